package part

import (
	"context"

	controllerv1 "heddle/api/heddle/controller/v1"
)

// Conn is one conversation of a host with this controller.
type Conn struct {
	// Poke has all parts asked what is to be sent. It does not block.
	Poke func()
	// Run is the run of the host's agent, Number the host's number of the conversation: the one with the highest
	// counts.
	Run    string
	Number uint64
	// Begun is higher at each later start of the agent; 0 where it did not say.
	Begun uint64
	// Slots bound what of the host's requests is under way at a time: who works on one holds a slot.
	Slots chan struct{}
}

// Message is the next message to a host, which is made when the first part has something to say.
type Message func() *controllerv1.FollowSliceResponse

// MostRequests is how many requests of one host are under way at a time.
const MostRequests = 256

// The hooks. But for Objects and Serve they are called in the order of what happens, while the controller has the lock
// of its hosts: none of them waits, and none calls the controller.
type (
	// Joiner is told of each host of the cluster, and again when its name is another.
	Joiner interface{ Joined(id, name string) }
	// Remover is told of each host that was taken out of the cluster.
	Remover interface{ Remove(id string) }
	// Definer is told that hosts may have to have something else by the definition.
	Definer interface{ DefinitionChanged() }
	// Follower is told when a host has connected, with its first message, and when that connection has ended. A
	// connection that another one replaces does not end for it.
	Follower interface {
		Connected(id string, c *Conn, first *controllerv1.FollowSliceRequest)
		Disconnected(id string, c *Conn)
	}
	// Hearer hears each message of a host but the first one.
	Hearer interface {
		Hear(id string, c *Conn, m *controllerv1.FollowSliceRequest)
	}
	// Servant works on what a host asks for in a message, once all parts have heard it. It is called without the lock.
	// What takes time it does beside, until ctx ends, which is that of the conversation.
	Servant interface {
		Serve(ctx context.Context, id string, c *Conn, m *controllerv1.FollowSliceRequest)
	}
	// Speaker adds to the next message what a host is to know and was not told by this connection.
	Speaker interface {
		Objects(id string, c *Conn, m Message)
	}
)
