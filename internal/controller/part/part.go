package part

import controllerv1 "heddle/api/heddle/controller/v1"

// Conn is one conversation of a host with this controller.
type Conn struct {
	// Poke has all parts asked what is to be sent. It does not block.
	Poke func()
}

// Message is the next message to a host, which is made when the first part has something to say.
type Message func() *controllerv1.FollowSliceResponse

// The hooks. But for Objects they are called in the order of what happens, while the controller holds the lock of its
// hosts: none of them waits, and none calls the controller.
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
	// Speaker adds to the next message what a host is to know and was not told by this connection.
	Speaker interface {
		Objects(id string, c *Conn, m Message)
	}
)
