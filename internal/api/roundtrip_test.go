package api

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	agentv1 "heddle/api/heddle/agent/v1"
	"heddle/internal/api/wire"
	"heddle/internal/diagnose"
	"heddle/internal/plan"
	"heddle/internal/spec"
)

// spoken returns the Go types of request and answer of each call of the contract; Capture's answers have a test of
// their own.
func spoken() map[string][2]any {
	return map[string][2]any{
		"StateService.GetState": {none{}, &State{}}, "StateService.GetProgress": {none{}, &Progress{}},
		"StateService.GetMetrics": {none{}, ""},
		"MoveService.ListMoves":   {PortMoveOf{}, []PortMove{}}, "MoveService.CopyMovingPort": {PortMoveOf{},
			&PortMove{}},
		"MoveService.SilencePort": {PortMoveOf{}, &PortMove{}}, "MoveService.CancelMove": {PortMoveOf{}, none{}},
		"MoveService.ReleaseMovedPort":    {PortMoveOf{}, none{}},
		"StateService.StopAgent":          {none{}, none{}},
		"NeighbourService.ListNeighbours": {NeighbourQuery{}, &Neighbours{}},
		"StatsService.ListStats":          {none{}, []Stats{}},
		"StatsService.ListMacs":           {none{}, []MAC{}},
		"StatsService.ForgetMacs":         {ForgetMACs{}, []MAC{}},
		"ChangeService.Apply":             {Apply{}, &Applied{}},
		"ChangeService.GetTrial":          {none{}, &Trial{}},
		"ChangeService.Foresee":           {Foresee{}, &diagnose.Foreseen{}},
		"PortService.ConnectPort":         {Connect{}, &Applied{}},
		"PortService.ReconnectPort":       {Connect{}, &Applied{}},
		"PortService.ConnectIncomingPort": {Incoming{}, &Applied{}},
		"PortService.ExpectGuest":         {Expect{}, none{}}, "PortService.ActivatePort": {Activate{}, none{}},
		"PortService.DisconnectPort": {Disconnect{}, none{}},
		"PortService.BlockPort":      {Block{}, &Applied{}}, "PortService.MovePort": {Move{}, &Applied{}},
		"UplinkService.MaintainUplink": {Maintain{}, &Maintained{}},
		"ClusterService.GetMembership": {none{}, &Membership{}}, "ClusterService.JoinCluster": {Join{}, &Membership{}},
		"ClusterService.HandOver":     {HandOver{}, &Applied{}},
		"ClusterService.LeaveCluster": {none{}, &Membership{}}, "ClusterService.GetHostHealth": {none{}, &HostHealth{}},
		"BenchmarkService.RunBenchmark": {HostBenchmark{}, none{}}, "BenchmarkService.EndBenchmark": {EndBenchmark{},
			&BenchmarkCounts{}},
		"StatsService.ListVitals":   {none{}, []Vitals{}},
		"StatsService.ListAccounts": {none{}, []PortAccount{}}, "ChangeService.ConfirmTrial": {none{}, &Trial{}},
		"HostPortService.ListHostPorts": {none{}, []HostPort{}}, "HostPortService.GetAdoption": {HostPortName{},
			&Adoption{}},
		"HostPortService.Adopt": {Adopt{}, &Adoption{}}, "HostPortService.ConfirmAdoption": {HostPortName{},
			&Adoption{}},
		"HostPortService.ReleaseAdoption": {Release{}, &Adoption{}},
		"EventService.FollowEvents":       {Follow{}, Events{}},
		"FlowService.ListFlows":           {FlowQuery{}, &FlowList{}}, "FlowService.GetFlowStatus": {none{},
			&FlowStatus{}},
		"FlowService.FollowFlowTop": {FlowTopQuery{}, FlowTop{}}, "FlowService.FollowFlowRecords": {recordsRequest{},
			FlowRecords{}},
		"FlowService.FollowFlowSums": {FlowSumQuery{}, FlowSums{}},
		"CaptureService.Capture":     {Capture{}, nil}, "CaptureService.EndCapture": {EndCapture{}, none{}},
		"ConfigService.GetConfig": {ConfigQuery{}, &AppliedConfig{}}, "ConfigService.ListConfigs": {none{},
			[]AppliedConfig{}},
		"TraceService.Trace": {diagnose.Request{}, &diagnose.Report{}}, "AdviseService.Advise": {AdviseRequest{},
			&Advice{}},
	}
}

// eachCall calls f with every call of the schema; one that spoken lacks fails the test.
func eachCall(t *testing.T, f func(t *testing.T, m protoreflect.MethodDescriptor, ask, answer any)) {
	known, seen := spoken(), 0
	protoregistry.GlobalFiles.RangeFilesByPackage("heddle.agent.v1", func(file protoreflect.FileDescriptor) bool {
		for i := range file.Services().Len() {
			s := file.Services().Get(i)
			for n := range s.Methods().Len() {
				m := s.Methods().Get(n)
				name := string(s.Name()) + "." + string(m.Name())
				types, ok := known[name]
				if !ok {
					t.Errorf("%s: this test does not know what it asks with and answers", name)
					continue
				}
				seen++
				t.Run(name, func(t *testing.T) { f(t, m, types[0], types[1]) })
			}
		}
		return true
	})
	if seen != len(known) {
		t.Errorf("the schema has %d of the %d calls", seen, len(known))
	}
}

// made returns an empty message of that kind, of generated Go.
func made(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	m, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return m.New().Interface()
}

// TestEveryMessageCarriesWhatIsPutIntoIt: random values of every field are encoded to bytes and decoded.
func TestEveryMessageCarriesWhatIsPutIntoIt(t *testing.T) {
	eachCall(t, func(t *testing.T, m protoreflect.MethodDescriptor, ask, answer any) {
		var c wire.Codec
		for seed := range uint64(50) {
			g := &filler{Rand: rand.New(rand.NewPCG(seed, 1))}
			q := reflect.New(reflect.TypeOf(ask))
			g.message(q.Elem(), m.Input())
			back := reflect.New(q.Type().Elem())
			there := made(t, m.Input())
			if err := c.Put(q.Interface(), there); err != nil {
				t.Fatalf("seed %d: %v\n%+v", seed, err, q.Elem())
			}
			if err := c.Get(crossed(t, there), back.Interface()); err != nil ||
				!reflect.DeepEqual(q.Interface(), back.Interface()) {
				t.Fatalf("seed %d: %v\nput %s\ngot %s", seed, err, text(q), text(back))
			}
			if answer == nil || m.Output().Fields().Len() == 0 {
				continue
			}
			a, r := g.answer(answer, m), reflect.New(reflect.TypeOf(answer))
			out := made(t, m.Output())
			if err := c.PutAnswer(a.Elem().Interface(), out); err != nil {
				t.Fatalf("seed %d: %v\n%s", seed, err, text(a))
			}
			if err := c.GetAnswer(crossed(t, out), r.Interface()); err != nil ||
				!reflect.DeepEqual(a.Interface(), r.Interface()) {
				t.Fatalf("seed %d: %v\nput %s\ngot %s", seed, err, text(a), text(r))
			}
		}
	})
}

// TestANewerAgentIsUnderstood: unknown fields are ignored, an unknown word is shown by its number, and a policy's value
// of an unknown kind is no value. An answer never fails because of them.
func TestANewerAgentIsUnderstood(t *testing.T) {
	words := 0
	eachCall(t, func(t *testing.T, m protoreflect.MethodDescriptor, _, answer any) {
		if answer == nil || m.Output().Fields().Len() == 0 {
			return
		}
		var c wire.Codec
		a := (&filler{Rand: rand.New(rand.NewPCG(7, 7))}).answer(answer, m)
		out := made(t, m.Output())
		if err := c.PutAnswer(a.Elem().Interface(), out); err != nil {
			t.Fatal(err)
		}
		newer(out.ProtoReflect())
		r := reflect.New(reflect.TypeOf(answer))
		if err := c.GetAnswer(crossed(t, out), r.Interface()); err != nil {
			t.Fatal(err)
		}
		words += strings.Count(text(r), `"unknown-4711"`)
		again := made(t, m.Output())
		if err := c.PutAnswer(r.Elem().Interface(), again); err != nil && !strings.Contains(err.Error(), "VLAN") &&
			!strings.Contains(err.Error(), "can't be carried") {
			t.Errorf("it can't be handed on: %v", err)
		}
	})
	if words < 30 {
		t.Errorf("%d words that are not known were shown", words)
	}
}

// TestAReleasedProgramReadsWhatThisAgentAnswers, whatever was added to an answer since.
func TestAReleasedProgramReadsWhatThisAgentAnswers(t *testing.T) {
	known := map[string]protoreflect.MethodDescriptor{}
	for _, m := range released(t) {
		known[procedure(m)] = m
	}
	eachCall(t, func(t *testing.T, m protoreflect.MethodDescriptor, _, answer any) {
		old := known[procedure(m)]
		if old == nil || answer == nil || m.Output().Fields().Len() == 0 {
			return
		}
		var c wire.Codec
		out := made(t, m.Output())
		if err := c.PutAnswer((&filler{Rand: rand.New(rand.NewPCG(3, 3))}).answer(answer, m).Elem().Interface(),
			out); err != nil {
			t.Fatal(err)
		}
		newer(out.ProtoReflect())
		b, err := proto.Marshal(out)
		if err != nil {
			t.Fatal(err)
		}
		read := dynamicpb.NewMessage(old.Output())
		if err := proto.Unmarshal(b, read); err != nil || len(read.GetUnknown()) == 0 {
			t.Errorf("%v, %d bytes were not known", err, len(read.GetUnknown()))
		}
	})
}

// TestAWordThatTheSchemaLacksFailsNoAnswer: the agent sends its answer without the word. A request with such a word is
// refused.
func TestAWordThatTheSchemaLacksFailsNoAnswer(t *testing.T) {
	c, _ := serve(t, &echo{})
	batch := FlowRecords{Records: []FlowRecord{{Flow: Flow{Port: "p", Direction: "sideways"}, Reason: "tired"},
		{Reason: "unknown-9"}, {Reason: "idle"}}}
	lenient, m := wire.Codec{Lenient: true}, &agentv1.FollowFlowRecordsResponse{}
	if err := lenient.PutAnswer(batch, m); err != nil {
		t.Fatal(err)
	}
	var got FlowRecords
	if err := lenient.GetAnswer(m, &got); err != nil || len(got.Records) != 3 {
		t.Fatalf("%+v %v", got, err)
	}
	if r := got.Records; r[0].Port != "p" || r[0].Reason != "" || r[0].Direction != "" || r[1].Reason != "unknown-9" ||
		r[2].Reason != "idle" {
		t.Errorf("%+v", r)
	}
	if _, err := c.Flows(t.Context(), FlowQuery{Sort: "colour"}); err == nil ||
		!strings.Contains(err.Error(), `"colour" is none of`) {
		t.Errorf("a request: %v", err)
	}
	h, _ := serve(t, &strange{})
	if ports, err := h.HostPorts(t.Context()); err != nil || len(ports) != 1 || ports[0].Name != "vmk0" ||
		ports[0].State != "" {
		t.Errorf("an agent's answer: %+v %v", ports, err)
	}
}

// strange answers with a word that its own schema lacks.
type strange struct{ echo }

func (s *strange) HostPorts(context.Context) ([]HostPort, error) {
	return []HostPort{{Name: "vmk0", State: "sleepy"}}, nil
}

// newer changes a message to one that a later version might send.
func newer(m protoreflect.Message) {
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		const later = protoreflect.EnumNumber(4711)
		switch {
		case fd.IsMap():
		case fd.IsList():
			for i := range v.List().Len() {
				switch {
				case fd.Enum() != nil:
					v.List().Set(i, protoreflect.ValueOfEnum(later))
				case fd.Message() != nil:
					newer(v.List().Get(i).Message())
				}
			}
		case fd.Enum() != nil:
			m.Set(fd, protoreflect.ValueOfEnum(later))
		case fd.Message() != nil:
			newer(v.Message())
		}
		return true
	})
	if v, ok := m.Interface().(*agentv1.PolicyValue); ok && v.GetVlan() == nil {
		v.Kind = nil
	}
	if m.Descriptor().ParentFile().Package() == "heddle.agent.v1" {
		m.SetUnknown(append(m.GetUnknown(), 0xfa, 0xff, 0x3f, 0x03, 'n', 'e', 'w')) // a text in field 131071
	}
}

// crossed returns a message after encoding and decoding.
func crossed(t *testing.T, m proto.Message) proto.Message {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	out := m.ProtoReflect().New().Interface()
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatal(err)
	}
	return out
}

func text(v reflect.Value) string {
	b, err := json.MarshalIndent(v.Interface(), "", " ")
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
}

// filler fills values with random ones that the schema allows. It finds the field of a message by its name, without the
// codec.
type filler struct{ *rand.Rand }

// answer returns a pointer to a random answer of a call.
func (g *filler) answer(of any, m protoreflect.MethodDescriptor) reflect.Value {
	v := reflect.New(reflect.TypeOf(of))
	g.field(v.Elem(), m.Output().Fields().ByNumber(1))
	return v
}

func (g *filler) message(v reflect.Value, m protoreflect.MessageDescriptor) {
	for i := range v.NumField() {
		f := v.Type().Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if w, ok := f.Tag.Lookup("wire"); ok {
			name = w
		}
		switch {
		case !f.IsExported() || name == "-":
		case name == "" && f.Anonymous:
			g.message(v.Field(i), m)
		default:
			fd := m.Fields().ByJSONName(name)
			if fd == nil {
				panic(fmt.Sprintf("%s.%s: message %s has no %q", v.Type(), f.Name, m.FullName(), name))
			}
			g.field(v.Field(i), fd)
		}
	}
}

func (g *filler) field(v reflect.Value, fd protoreflect.FieldDescriptor) {
	if x, ok := g.special(v.Type()); ok {
		v.Set(reflect.ValueOf(x))
		return
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		g.field(v.Elem(), fd)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1+g.IntN(3), 4))
		for i := range v.Len() {
			g.field(v.Index(i), fd)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		for range 1 + g.IntN(3) {
			e := reflect.New(v.Type().Elem()).Elem()
			g.field(e, fd.MapValue())
			v.SetMapIndex(reflect.ValueOf(g.text()), e)
		}
	case reflect.Struct:
		g.message(v, fd.Message())
	case reflect.String:
		v.SetString(g.word(fd))
	case reflect.Bool:
		v.SetBool(g.IntN(2) == 1)
	case reflect.Float64:
		v.SetFloat(g.NormFloat64() * 1000)
	case reflect.Int, reflect.Int64:
		n := int64(g.Uint64())
		if fd.Kind() == protoreflect.Int32Kind {
			n = int64(int32(n))
		}
		v.SetInt(n)
	default:
		v.SetUint(g.Uint64() >> (64 - v.Type().Bits()))
	}
}

// special returns values of types with their own form in the schema.
func (g *filler) special(t reflect.Type) (any, bool) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return time.Unix(g.Int64N(1<<33), g.Int64N(1e9)).UTC(), true
	case reflect.TypeFor[time.Duration]():
		return time.Duration(g.Int64N(1<<50) - 1<<49), true
	case reflect.TypeFor[plan.PortID]():
		return plan.PortID{Switch: g.text(), Name: g.text()}, true
	case reflect.TypeFor[netip.Addr]():
		return g.address(), true
	case reflect.TypeFor[netip.AddrPort]():
		return netip.AddrPortFrom(g.address(), uint16(g.Uint32())), true
	case reflect.TypeFor[plan.MAC]():
		return g.mac(), true
	case reflect.TypeFor[[]byte]():
		return []byte(g.text()), true
	case reflect.TypeFor[plan.VLANSet]():
		return g.vlans(), true
	case reflect.TypeFor[plan.VLAN]():
		return g.vlan(), true
	case reflect.TypeFor[plan.FieldValue]():
		return g.value(), true
	case reflect.TypeFor[spec.Policy]():
		return g.policy(), true
	}
	return nil, false
}

func (g *filler) value() plan.FieldValue {
	return []plan.FieldValue{plan.FieldValueOf(g.IntN(2) == 0), plan.FieldValueOf(g.IntN(5000)),
		plan.FieldValueOf(g.text()), plan.FieldValueOf([]string{g.text(), ""}),
		plan.FieldValueOf([]string{}), plan.FieldValueOf(time.Duration(g.Int64N(1 << 50))),
		plan.FieldValueOf(g.vlan()), plan.FieldValueOf(g.members()),
		plan.FieldValueOf([]plan.Members{g.members(), {}})}[g.IntN(9)]
}

// members returns an object of the configuration file, with another in it.
func (g *filler) members() plan.Members {
	return plan.Members{{Name: g.text(), Value: plan.FieldValueOf(g.IntN(5000))},
		{Name: "tls", Value: plan.FieldValueOf(plan.Members{{Name: "ca", Value: plan.FieldValueOf(g.text())}})}}
}

// policy sets some fields of a policy independently.
func (g *filler) policy() (p spec.Policy) {
	examples := map[plan.Kind]string{plan.KindTruth: "false", plan.KindAnswer: "accept", plan.KindNumber: "0",
		plan.KindDuration: "2s", plan.KindChoice: "x", plan.KindList: "a,b"}
	for _, f := range plan.Fields() {
		if value, ok := examples[f.Kind]; ok && g.IntN(2) == 0 {
			if err := f.Parse(&p, value); err != nil {
				panic(err)
			}
		}
	}
	if g.IntN(2) == 0 {
		p.VLAN = &spec.VLAN{Trunk: []string{"1-5", "7"}, Outer: "802.1ad"}
	}
	return p
}

func (g *filler) vlans() (s plan.VLANSet) {
	for range 1 + g.IntN(4) {
		lo := uint16(g.IntN(4000))
		s.AddRange(lo, lo+uint16(g.IntN(95)))
	}
	return s
}

func (g *filler) vlan() plan.VLAN {
	return []plan.VLAN{{}, {Mode: plan.VLANAccess, ID: uint16(1 + g.IntN(4094))}, {Mode: plan.VLANTrunk, Set: g.vlans(),
		AD: g.IntN(2) == 0}}[g.IntN(3)]
}

func (g *filler) address() netip.Addr {
	var b [16]byte
	for i := range b {
		b[i] = byte(g.Uint32())
	}
	if g.IntN(2) == 0 {
		return netip.AddrFrom4([4]byte(b[:4]))
	}
	return netip.AddrFrom16(b)
}

func (g *filler) mac() (m plan.MAC) {
	for i := range m {
		m[i] = byte(g.Uint32())
	}
	m[0] |= 2
	return m
}

// word returns a text that a field can have: a word of an enum, an address, or anything.
func (g *filler) word(fd protoreflect.FieldDescriptor) string {
	switch {
	case fd.Enum() != nil:
		return wire.Text(fd.Enum().Values().Get(1 + g.IntN(fd.Enum().Values().Len()-1)))
	case fd.Kind() == protoreflect.BytesKind && g.IntN(2) == 0:
		return g.mac().String()
	case fd.Kind() == protoreflect.BytesKind:
		return g.address().String()
	}
	return g.text()
}

func (g *filler) text() string {
	letters := []rune("abcXYZ0129 -/:\n\"\\\x00ü€\U0001f41f")
	s := make([]rune, 1+g.IntN(12))
	for i := range s {
		s[i] = letters[g.IntN(len(letters))]
	}
	return string(s)
}
