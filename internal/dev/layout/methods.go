package layout

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"strings"
)

// generatedFiles end so: what a program wrote is not held to what people read.
const generatedFiles = "_bpfel.go"

// Methods counts the methods of every type of the product and the workshop, by "package.Type". own are the type's
// alone. reach are all that work on its state: its own, those of the types that embed it, and those of its wrappers. A
// wrapper has no state: it is a struct of one or two pointers, or of wrappers. Methods that were moved from a type to a
// wrapper of it are counted as before. Tests may have larger types.
func Methods(packages []Package) (own, reach map[string]int, err error) {
	own, reach = map[string]int{}, map[string]int{}
	for _, p := range packages {
		if room(p.Path) == "internal/test" {
			continue
		}
		types, err := typesOf(p)
		if err != nil {
			return nil, nil, fmt.Errorf("count the methods of types: %w", err)
		}
		for name, t := range types {
			if t.methods > 0 {
				own[p.Path+"."+name] = t.methods
			}
			if n := types.reaching(name); n > 0 {
				reach[p.Path+"."+name] = n
			}
		}
	}
	return own, reach, nil
}

func receiver(e ast.Expr) string {
	switch t := e.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// declaredType is a type as its package declares it.
type declaredType struct {
	methods int
	fields  []field // of a struct
	alone   bool    // a struct of one or two fields, each of which leads to another type of the package
}

// field is a field of a struct whose type is another type of the package, or a pointer to it.
type field struct {
	of       string
	embedded bool
}

type declaredTypes map[string]*declaredType

// typesOf reads the types of a package and how many methods each has.
func typesOf(p Package) (declaredTypes, error) {
	types := declaredTypes{}
	get := func(name string) *declaredType {
		if types[name] == nil {
			types[name] = &declaredType{}
		}
		return types[name]
	}
	structs := map[string]*ast.StructType{}
	for _, name := range p.Files {
		if strings.HasSuffix(name, generatedFiles) {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch d := n.(type) {
			case *ast.FuncDecl:
				if d.Recv != nil {
					get(receiver(d.Recv.List[0].Type)).methods++
				}
				return false
			case *ast.TypeSpec:
				get(d.Name.Name)
				if s, is := d.Type.(*ast.StructType); is {
					structs[d.Name.Name] = s
				}
				return false
			}
			return true
		})
	}
	for name, s := range structs {
		types[name].fields, types[name].alone = fieldsOf(s, types)
	}
	return types, nil
}

// fieldsOf are the fields that lead to other types of the package; alone says that there are one or two of them and
// nothing else.
func fieldsOf(s *ast.StructType, types declaredTypes) (list []field, alone bool) {
	all := 0
	for _, f := range s.Fields.List {
		all += max(1, len(f.Names))
		of := receiver(f.Type)
		_, pointer := f.Type.(*ast.StarExpr)
		if types[of] == nil || !pointer && len(f.Names) > 0 {
			continue
		}
		list = append(list, field{of, len(f.Names) == 0})
	}
	return list, all > 0 && all <= 2 && len(list) == all
}

// reaching is how many methods work on the state of a type.
func (t declaredTypes) reaching(name string) int {
	through := map[string]bool{name: true}
	for grown := true; grown; {
		grown = false
		for other := range maps.Keys(t) {
			if !through[other] && t.leads(other, through) {
				through[other], grown = true, true
			}
		}
	}
	n := 0
	for other := range through {
		n += t[other].methods
	}
	return n
}

// leads reports whether a type embeds one of some types, or is a wrapper of it.
func (t declaredTypes) leads(name string, to map[string]bool) bool {
	for _, f := range t[name].fields {
		if to[f.of] && (f.embedded || t[name].alone) {
			return true
		}
	}
	return false
}
