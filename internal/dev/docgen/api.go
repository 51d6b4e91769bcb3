package docgen

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	_ "heddle/api/heddle/agent/v1"      // the agent's schema
	_ "heddle/api/heddle/controller/v1" // the controllers'
	_ "heddle/api/heddle/host/v1"       // between hosts
	"heddle/internal/api/wire"
)

// schema is one of the program's interfaces, with its page.
type schema struct {
	path  string
	pkg   protoreflect.FullName
	files string
	intro string
}

// schemas are all of them.
func schemas() []schema {
	return []schema{
		{"docs/reference/api.md", "heddle.agent.v1", "api/heddle/agent/v1/*.proto", apiIntro},
		{"docs/reference/controller-api.md", "heddle.controller.v1", "api/heddle/controller/v1/*.proto",
			controllerIntro},
		{"docs/reference/host-api.md", "heddle.host.v1", "api/heddle/host/v1/*.proto", hostIntro},
	}
}

const controllerIntro = `# The API of a controller

What agents, commands and other programs say to a controller, and what it answers: [Connect](https://connectrpc.com) over protobuf,
by the rules of the [agent's API](api.md).

- FleetService, AccessService, StatusService, RootService and MemberService are for people and tools. They answer on the controller's
  socket, ` + "`/run/heddle-controller/api.sock`" + `, which is for root alone, and on port 7443 over TLS 1.3 for who
  [shows a token](../how-to/many-hosts/access.md): ` + "`Authorization: Bearer ht1.…`" + `. Prometheus reads ` + "`/metrics`" + ` there.
- HostService is for agents, on port 7411: TLS 1.3, where both sides show [certificates](../explanation/identity.md); JoinHost
  shows a token instead.

` + "```sh" + `
curl --unix-socket /run/heddle-controller/api.sock --json '{}' http://heddle/heddle.controller.v1.FleetService/ListHosts
` + "```" + `

`

const hostIntro = `# The API between hosts

What one host of a cluster says to another while a port moves between them, and what that one answers:
[Connect](https://connectrpc.com) over protobuf, by the rules of the [agent's API](api.md). TLS 1.3, where both sides show
[certificates](../explanation/identity.md) of the cluster. A host listens for it only while a port waits for its guest.

`

const apiIntro = `# The API of the agent

What the commands and other programs say to the agent, and what it answers: [Connect](https://connectrpc.com) over protobuf on
the agent's socket, ` + "`/run/heddle/NAME.sock`" +
	`, which is for root alone ([agent.md](agent.md)). A call is a POST; Connect's JSON
serves a script:

` + "```sh" + `
curl --unix-socket /run/heddle/default.sock --json '{}' http://heddle/heddle.agent.v1.StateService/GetProgress
` + "```" + `

The schema is in ` + "`api/heddle/agent/v1/*.proto`" +
	`. Fields, calls and words are added to it, and are never renamed or numbered anew
within a version of the protocol. A request whose header ` + "`Heddle-Api`" +
	` has another version than the agent's is refused with a
sentence, and one with a field that the schema does not have with the field's name. A failed call has an [Error](#error) among its details.

- A field's name in JSON is in lowerCamelCase (` + "`port_group` is `portGroup`" +
	`); where it is not, it stands beside the name.
- A field that is not set has the empty value of its type: 0, no text, false, no message. An *optional* one may be absent.
- A field without a meaning is what its name says. Fields that follow each other may share one.
- A word of an enum has its text, which ` + "`-o json`" + ` and ` + "`-o yaml`" +
	` print, and its name in the schema, which Connect's JSON has. The
  number 0, which is not listed, is for what is not set.

The agent's socket speaks HTTP/1.1, which is enough for Connect's clients; gRPC needs HTTP/2, which a controller's port for people and tools
speaks as well. Clients are made from the schema, whose root is ` + "`api`" + `, in any language for which protobuf has a generator:

` + "```sh" + `
protoc -I api --python_out=. --grpc_python_out=. api/heddle/controller/v1/*.proto api/heddle/agent/v1/*.proto api/heddle/options/v1/*.proto
` + "```" + `

The controllers' API has a [page of its own](controller-api.md). [output.md](output.md) has what ` + "`-o json`" + ` and ` + "`-o yaml`" +
	` make of these messages, and which command prints which.

`

// apiPage is a schema: services with their calls, messages, words of enums, each with its comment.
func apiPage(root string, s schema) (string, error) {
	comments, err := readComments(root, s)
	if err != nil {
		return "", err
	}
	p := apiWriter{schema: s, comments: comments}
	p.b.WriteString(generated(s.files) + s.intro)
	p.contents()
	for _, f := range apiFiles(s) {
		p.file(f)
	}
	return p.b.String(), errors.Join(p.faults...)
}

// readComments reads the comments of a whole schema.
func readComments(root string, s schema) (map[string]string, error) {
	names, err := filepath.Glob(filepath.Join(root, s.files))
	if err != nil {
		return nil, err
	}
	comments := map[string]string{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			return nil, fmt.Errorf("read the schema: %w", err)
		}
		if err := schemaComments(filepath.Base(name), string(text), comments); err != nil {
			return nil, err
		}
	}
	return comments, nil
}

// apiFiles are the files of a schema, those with services first, each kind by its name.
func apiFiles(s schema) []protoreflect.FileDescriptor {
	var files []protoreflect.FileDescriptor
	protoregistry.GlobalFiles.RangeFilesByPackage(s.pkg, func(f protoreflect.FileDescriptor) bool {
		files = append(files, f)
		return true
	})
	slices.SortFunc(files, func(a, b protoreflect.FileDescriptor) int {
		if (a.Services().Len() > 0) != (b.Services().Len() > 0) {
			return b.Services().Len() - a.Services().Len()
		}
		return strings.Compare(a.Path(), b.Path())
	})
	return files
}

// apiWriter writes the page. Faults are declarations that the page can't say anything about.
type apiWriter struct {
	b        strings.Builder
	schema   schema
	comments map[string]string
	faults   []error
}

// comment is what the schema says about a declaration, which has to say something.
func (p *apiWriter) comment(name string) string {
	if p.comments[name] == "" {
		p.faults = append(p.faults, fmt.Errorf("%s of %s has no comment: say what it is for", name, p.schema.files))
	}
	return p.comments[name]
}

// contents is a table of all calls, with links to their services.
func (p *apiWriter) contents() {
	p.b.WriteString("| service | calls |\n|---|---|\n")
	for _, f := range apiFiles(p.schema) {
		for i := range f.Services().Len() {
			s := f.Services().Get(i)
			var calls []string
			for j := range s.Methods().Len() {
				calls = append(calls, "`"+string(s.Methods().Get(j).Name())+"`")
			}
			fmt.Fprintf(&p.b, "| %s | %s |\n", linkTo(s, s), strings.Join(calls, ", "))
		}
	}
}

func (p *apiWriter) file(f protoreflect.FileDescriptor) {
	for i := range f.Services().Len() {
		p.service(f.Services().Get(i))
	}
	if f.Services().Len() == 0 {
		fmt.Fprintf(&p.b, "\n## In several services: %s\n", filepath.Base(f.Path()))
	}
	for i := range f.Messages().Len() {
		p.message(f.Messages().Get(i))
	}
	for i := range f.Enums().Len() {
		p.enum(f.Enums().Get(i))
	}
}

func (p *apiWriter) service(s protoreflect.ServiceDescriptor) {
	name := string(s.Name())
	fmt.Fprintf(&p.b, "\n## %s\n\n%s\n\n| call | takes | answers | meaning |\n|---|---|---|---|\n", name,
		p.comment(name))
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		takes, answer := linkTo(m, m.Input()), linkTo(m, m.Output())
		if m.IsStreamingClient() {
			takes = "stream of " + takes
		}
		if m.IsStreamingServer() {
			answer = "stream of " + answer
		}
		fmt.Fprintf(&p.b, "| `%s` | %s | %s | %s |\n", m.Name(), takes, answer,
			cell(p.comment(name+"."+string(m.Name()))))
	}
}

func (p *apiWriter) message(m protoreflect.MessageDescriptor) {
	name := string(m.Name())
	fmt.Fprintf(&p.b, "\n### %s\n\n%s\n", name, p.comment(name))
	fields := m.Fields()
	if fields.Len() == 0 {
		p.b.WriteString("\nIt has no fields.\n")
		return
	}
	p.b.WriteString("\n| field | type | meaning |\n|---|---|---|\n")
	said := ""
	for i := range fields.Len() {
		f := fields.Get(i)
		own := p.comments[name+"."+string(f.Name())]
		if own != "" {
			said = own
		} else if tells(said, string(f.Name())) {
			own = said
		}
		fmt.Fprintf(&p.b, "| %s | %s | %s |\n", fieldName(f), fieldType(f), cell(own))
	}
}

// tells reports whether a comment is about the field too: "from and to are the value before and after" stands above
// from alone. A word that something is said of has no article.
func tells(comment, field string) bool {
	named := regexp.MustCompile(`((?:\bthe|\ba|\ban|'s) )?\b` + field + `\b`)
	return slices.ContainsFunc(named.FindAllStringSubmatch(comment, -1), func(m []string) bool { return m[1] == "" })
}

func (p *apiWriter) enum(e protoreflect.EnumDescriptor) {
	name := string(e.Name())
	fmt.Fprintf(&p.b, "\n### %s\n\n%s\n\n", name, p.comment(name))
	for i := range e.Values().Len() {
		v := e.Values().Get(i)
		if v.Number() == 0 {
			continue
		}
		fmt.Fprintf(&p.b, "- `%s` (`%s`)", wire.Text(v), v.Name())
		if said := p.comments[name+"."+string(v.Name())]; said != "" {
			fmt.Fprintf(&p.b, ": %s", said)
		}
		p.b.WriteString("\n")
	}
}

// fieldName is a field's name, and beside it the one in JSON where that is not made of it by the rule.
func fieldName(f protoreflect.FieldDescriptor) string {
	if name := string(f.Name()); f.JSONName() != camel(name) {
		return fmt.Sprintf("`%s` (`%s`)", name, f.JSONName())
	}
	return fmt.Sprintf("`%s`", f.Name())
}

// camel is a name of the schema in lowerCamelCase.
func camel(name string) string {
	words := strings.Split(name, "_")
	for i, w := range words[1:] {
		words[i+1] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

func fieldType(f protoreflect.FieldDescriptor) string {
	switch one := f.ContainingOneof(); {
	case f.IsMap():
		return fmt.Sprintf("map of %s to %s", valueType(f.MapKey()), valueType(f.MapValue()))
	case f.IsList():
		return "list of " + valueType(f)
	case f.HasOptionalKeyword():
		return "optional " + valueType(f)
	case one != nil:
		return fmt.Sprintf("%s, one of `%s`", valueType(f), one.Name())
	}
	return valueType(f)
}

func valueType(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Enum() != nil:
		return linkTo(f, f.Enum())
	case f.Message() != nil:
		return linkTo(f, f.Message())
	}
	return f.Kind().String()
}

// linkTo is a link to the section of a declaration, from the page of another one, or the plain name of one of
// protobuf's own messages.
func linkTo(from, d protoreflect.Descriptor) string {
	pkg := d.ParentFile().Package()
	i := slices.IndexFunc(schemas(), func(s schema) bool { return s.pkg == pkg })
	if i < 0 {
		return string(d.FullName())
	}
	page := ""
	if from.ParentFile().Package() != pkg {
		page = filepath.Base(schemas()[i].path)
	}
	return fmt.Sprintf("[%s](%s#%s)", d.Name(), page, strings.ToLower(string(d.Name())))
}
