package fleet

import (
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "heddle/internal/api" // registers the contract
)

// used is a command that must work whichever of the programs are of the version before, and the calls that it makes:
// SERVICE.CALL without the version, where agent, controller and host are the packages. What is in capitals in its
// arguments is drawn by an earlier command: ${TOKEN}.
type used struct {
	// host is where it is typed: 0 or 1, or atController.
	host int
	args string
	// calls are those that the command makes itself; those that the controllers and the hosts make of each other come
	// with them.
	calls string
	// says is a part of what it prints; "" where the exit status is all.
	says string
	// draws is what later commands call the first id in what it prints as JSON.
	draws string
}

const atController = -1

// looks are the commands that look, at the controller and on a host.
func looks() []used {
	return []used{
		{atController, "host list", "controller.Fleet.ListHosts", "esx1", ""},
		{atController, "host show esx1", "controller.Fleet.ListFleetPorts", "esx1", ""},
		{atController, "port list", "controller.Fleet.ListHosts agent.State.GetState", "p-db", ""},
		{atController, "port show esx1:p-db", "agent.State.GetState", "db", ""},
		{atController, "show effective esx0:p-web", "agent.State.GetState", "vlan", ""},
		{atController, "port where p-vm", "controller.Move.LocatePorts", "esx0", ""},
		{atController, "port static list", "controller.StaticPort.ListStaticPorts", "", ""},
		{atController, "port migrate --list", "controller.Move.ListMoves", "", ""},
		{atController, "segment list", "controller.Segment.ListSegments", "", ""},
		{atController, "definition show", "controller.Fleet.GetDefinition", "dvs", ""},
		{atController, "rollout list", "controller.Rollout.ListRollouts", "", ""},
		{atController, "health", "controller.Health.GetNetworkHealth", "", ""},
		{atController, "ca show", "controller.Root.GetRoot", "", ""},
		{atController, "access whoami", "controller.Access.WhoAmI", "admin", ""},
		{atController, "access ca", "controller.Access.GetTrust", "CERTIFICATE", ""},
		{atController, "access who-can network dvs/web", "controller.Access.WhoCan", "", ""},
		{atController, "audit list", "controller.Access.ListAudit", "", ""},
		{atController, "audit verify", "controller.Access.VerifyAudit", "", ""},
		{atController, "events --no-follow --last -1", "agent.Event.FollowEvents", "esx0", ""},
		{atController, "top --once", "agent.Stats.ListStats", "p-web", ""},
		{atController, "stats --by switch", "agent.Stats.ListStats", "dvs", ""},
		{atController, "stats --check", "agent.Stats.ListAccounts", "", ""},
		{atController, "flows list", "agent.Flow.ListFlows", "p-web", ""},
		{atController, "flows top --once", "agent.Flow.FollowFlowTop", "p-web", ""},
		{atController, "flows list --by port-group", "agent.Flow.FollowFlowSums", "web", ""},
		{atController, "flows status --host esx1", "agent.Flow.GetFlowStatus", "", ""},
		{atController, "trace esx0:p-web esx1:p-web", "agent.Trace.Trace", "esx1", ""},
		{atController, "capture esx1:p-web -c 2", "agent.Capture.Capture agent.Capture.EndCapture", "", ""},
		{atController, "host token", "controller.Fleet.CreateJoinToken", "", ""},
		{atController, "uplink list", "agent.State.GetState", "uplink1", ""},
		{atController, "mac list --host esx1", "agent.Stats.ListMacs", "", ""},
		{atController, "status", "controller.Status.GetControllerStatus", "2 up", ""},
		{0, "advise", "agent.Advise.Advise", "", ""},
		{0, "status", "agent.State.GetState", "", ""},
		{0, "host show", "agent.Cluster.GetMembership", "esx0", ""},
		{0, "port list", "agent.State.GetState", "p-web", ""},
		{0, "stats", "agent.Stats.ListStats", "p-web", ""},
		{0, "mac list", "agent.Stats.ListMacs", "", ""},
		{0, "metrics", "agent.State.GetMetrics", "heddle_", ""},
		{0, "config show", "agent.Config.GetConfig", "lan", ""},
		{0, "config history", "agent.Config.ListConfigs", "", ""},
		{0, "host-port list", "agent.HostPort.ListHostPorts", "", ""},
		{0, "segment neighbours", "agent.Neighbour.ListNeighbours", "", ""},
		{0, "port moves", "agent.Move.ListMoves", "", ""},
		{0, "trace p-web --arp 192.0.2.9", "agent.Trace.Trace", "", ""},
		{0, "capture p-web -c 2", "agent.Capture.Capture", "", ""},
		{0, "flows list", "agent.Flow.ListFlows", "p-web", ""},
	}
}

// changes are the commands that change something, at the controller and on a host.
func changes() []used {
	return []used{
		{atController, "definition history -o json", "controller.History.ListChanges", "", "REVISION"},
		{atController, "definition apply -f ${FLEET2} --dry-run",
			"controller.Fleet.ApplyDefinition",
			"spare", ""},
		{atController, "definition apply -f ${FLEET2} -m two", "controller.Fleet.ApplyDefinition", "", ""},
		{atController, "definition show --revision ${REVISION}", "controller.History.GetPastDefinition", "", ""},
		{atController, "definition diff ${REVISION}", "controller.History.CompareDefinitions", "", ""},
		{atController, "definition rollback ${REVISION}", "controller.Fleet.ApplyDefinition", "", ""},
		{atController, "definition apply -f ${FLEET2} --together", "controller.Fleet.ApplyDefinition", "", ""},
		{atController, "definition rollback ${REVISION}", "controller.Fleet.ApplyDefinition", "", ""},
		{atController, "host sync", "controller.Fleet.SyncHosts", "", ""},
		{atController, "access token create --name tool --role viewer", "controller.Access.CreateAPIToken", "", ""},
		{atController, "access token list -o json", "controller.Access.ListAPITokens", "tool", "TOKEN"},
		{atController, "access token revoke ${TOKEN}", "controller.Access.RevokeAPIToken", "", ""},
		{atController, "access group create net-team --person ann", "controller.Access.PutGroup", "", ""},
		{atController, "access group list", "controller.Access.ListGroups", "net-team", ""},
		{atController, "access grant create --group net-team --role operator", "controller.Access.CreateGrant", "", ""},
		{atController, "access grant list -o json", "controller.Access.ListGrants", "net-team", "GRANT"},
		{atController, "access explain operate --person ann", "controller.Access.ExplainAccess", "", ""},
		{atController, "access grant revoke ${GRANT}", "controller.Access.RevokeGrant", "", ""},
		{atController, "access group leave net-team --person ann", "controller.Access.PutGroup", "", ""},
		{atController, "access group remove net-team", "controller.Access.RemoveGroup", "", ""},
		{atController, "definition apply -f ${FLEET2} --stages 1,100%", "controller.Fleet.ApplyDefinition", "", ""},
		{atController, "rollout show", "controller.Rollout.GetRollout", "", ""},
		{atController, "rollout pause", "controller.Rollout.PauseRollout", "", ""},
		{atController, "rollout resume", "controller.Rollout.ResumeRollout", "", ""},
		{atController, "rollout abort", "controller.Rollout.AbortRollout", "", ""},
		{atController, "backup export ${DIR}/backup.yaml", "controller.Backup.ExportBackup", "", ""},
		{atController, "backup diff ${DIR}/backup.yaml", "controller.Backup.CompareBackup", "", ""},
		{atController, "backup import ${DIR}/backup.yaml --dry-run", "controller.Backup.ImportBackup", "", ""},
		{atController, "health benchmark --duration 1s --rate 1M",
			"controller.Health.RunBenchmark", "", ""},
		{atController, "port move p-db --host esx1 --port-group spare",
			"controller.Move.ReassignPort", "", ""},
		{atController, "port move p-db --host esx1 --port-group db", "controller.Move.ReassignPort", "", ""},
		{1, "port move p-db --port-group spare", "agent.Port.MovePort", "", ""},
		{1, "port move p-db --port-group db", "agent.Port.MovePort", "", ""},
		{1, "port block p-db", "agent.Port.BlockPort", "", ""},
		{1, "port unblock p-db", "agent.Port.BlockPort", "", ""},
		{1, "port disconnect p-db", "agent.Port.DisconnectPort", "", ""},
		{1, "port connect p-db --switch dvs --port-group db --device p-db", "agent.Port.ConnectPort", "", ""},
		{1, "mac flush --all", "agent.Stats.ForgetMacs", "", ""},
		{1, "uplink drain uplink1 --switch lan --yes --force", "agent.Uplink.MaintainUplink", "", ""},
		{1, "uplink restore uplink1 --switch lan", "agent.Uplink.MaintainUplink", "", ""},
		{1, "apply -f ${OWN2} --yes", "agent.Change.Apply", "", ""},
		{1, "config diff 1 1", "agent.Config.GetConfig", "", ""},
		{1, "config rollback", "agent.Change.Apply", "", ""},
	}
}

// lasts are the commands after which the cluster is another one.
func lasts() []used {
	return []used{
		{atController, "ca rotate", "controller.Root.RotateRoot", "", ""},
		{atController, "host remove esx1", "controller.Fleet.RemoveHost", "", ""},
	}
}

// elsewhere are the calls that no command of the tables makes, with who makes them between two versions.
func elsewhere() map[string]string {
	const (
		moves    = "TestS79_S83_S100_APortMovesBetweenTwoVersions, between this version and a later one"
		relayed  = "the controllers, for commands of the tables"
		follow   = "the hosts of the test themselves, all the time"
		cluster  = "TestS83_S103_ControllersOfTwoVersionsAnswerTogether"
		tunnels  = "TestS84_AgentsAreUpdatedWhileTheirTunnelsCarry"
		onePlace = "a command that is typed where it works: it is of the same package as the agent or the controller"
		nobody   = "no test between two versions: the messages are held by the rules of the contract"
	)
	by := map[string]string{}
	for who, calls := range map[string]string{
		moves: "agent.Move.CancelMove agent.Move.CopyMovingPort agent.Move.ReleaseMovedPort agent.Move.SilencePort " +
			"agent.Port.ActivatePort agent.Port.ConnectIncomingPort agent.Port.ExpectGuest host.Move.CopyPort",
		relayed: "agent.Change.Foresee agent.Benchmark.RunBenchmark agent.Benchmark.EndBenchmark " +
			"agent.Port.ReconnectPort",
		follow: "controller.Host.DescribeArrival controller.Host.ExplainRefusal controller.Host.FollowProbes " +
			"controller.Host.FollowSegments controller.Host.FollowSlice controller.Host.JoinHost " +
			"controller.Host.PingController controller.Host.RenewHost agent.Cluster.GetHostHealth " +
			"agent.Stats.ListVitals",
		cluster: "controller.Controller.AddMember controller.Controller.FollowSegmentsHere " +
			"controller.Controller.ForeseeHere controller.Controller.GetController " +
			"controller.Controller.GetHostsHere controller.Controller.JoinController " +
			"controller.Controller.ListAuditHere controller.Controller.LocatePortsHere " +
			"controller.Controller.PrepareHostsHere controller.Controller.ReadClock " +
			"controller.Controller.ReadProbesHere controller.Controller.ReadVitalsHere " +
			"controller.Controller.SyncHostsHere controller.Controller.VerifyAuditHere " +
			"controller.Controller.ClaimHost controller.Controller.ShareMoves",
		onePlace: "agent.Change.ConfirmTrial agent.Change.GetTrial agent.Cluster.HandOver agent.Cluster.JoinCluster " +
			"agent.Cluster.LeaveCluster agent.HostPort.Adopt agent.HostPort.ConfirmAdoption " +
			"agent.HostPort.GetAdoption agent.HostPort.ReleaseAdoption agent.State.GetProgress " +
			"agent.State.StopAgent agent.Flow.FollowFlowRecords controller.Member.ConfirmRestored " +
			"controller.Member.CreateControllerToken controller.Member.JoinCluster " +
			"controller.Member.ListControllers controller.Member.RemoveController controller.Member.TakeSnapshot",
		tunnels: "controller.Segment.GetSegment",
		nobody: "controller.Access.GetSignIn controller.Access.SignIn controller.Access.SignOut " +
			"controller.Fleet.RetryHost controller.Move.ActivateMove controller.Move.CancelMove " +
			"controller.Move.MovePort controller.Controller.ShareAdapters " +
			"controller.StaticPort.SettleStaticPort controller.StaticPort.ReleaseStaticPort",
	} {
		for c := range strings.FieldsSeq(calls) {
			by[c] = who
		}
	}
	return by
}

// calls are those of the contract: PACKAGE.SERVICE.CALL.
func calls() (list []string) {
	protoregistry.GlobalFiles.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		name, ours := strings.CutPrefix(string(f.Package()), "heddle.")
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			for k := range s.Methods().Len() {
				if ours {
					list = append(list, strings.TrimSuffix(name, ".v1")+"."+
						strings.TrimSuffix(string(s.Name()), "Service")+"."+string(s.Methods().Get(k).Name()))
				}
			}
		}
		return true
	})
	slices.Sort(list)
	return list
}

// Each call of the contract is made by a command that works beside the version before, or by a test that is named.
func TestS83_EachCallIsMadeBesideTheVersionBefore(t *testing.T) {
	t.Parallel()
	made := elsewhere()
	for _, u := range slices.Concat(looks(), changes(), lasts()) {
		for c := range strings.FieldsSeq(u.calls) {
			made[c] = u.args
		}
	}
	all := calls()
	for _, c := range all {
		if made[c] == "" {
			t.Errorf("no command calls %s beside the version before", c)
		}
		delete(made, c)
	}
	for c, by := range made {
		t.Errorf("%s, of %q, is no call of the contract", c, by)
	}
	if len(all) < 100 {
		t.Errorf("the contract has %d calls", len(all))
	}
}
