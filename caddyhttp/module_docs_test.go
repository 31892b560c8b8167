package caddyhttp

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/caddyserver/caddy/v2"
)

// TestModuleDocs checks what Caddy's website shows of the modules: each type that their
// JSON contains has a text, and so has each field, in whole sentences.
func TestModuleDocs(t *testing.T) {
	packages := map[string]map[string]typeDoc{} // by path, of those with such types
	docOf := func(typ reflect.Type) typeDoc {
		path := typ.PkgPath()
		if packages[path] == nil {
			packages[path] = readTypeDocs(t, filepath.Join("..", filepath.FromSlash(strings.TrimPrefix(path, thisModule))))
		}
		return packages[path][typ.Name()]
	}
	seen := map[reflect.Type]bool{}
	var check func(typ reflect.Type)
	check = func(typ reflect.Type) {
		switch typ.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
			check(typ.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[typ] || !strings.HasPrefix(typ.PkgPath(), thisModule) {
			return
		}
		seen[typ] = true
		d := docOf(typ)
		if !isSentence(d.text) {
			t.Errorf("%s: the text is %q; write what it is, in whole sentences", typ.Name(), d.text)
		}
		for field := range typ.Fields() {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if field.Anonymous && name == "" {
				check(field.Type)
				continue
			}
			if !field.IsExported() || name == "-" {
				continue
			}
			if name == "" {
				t.Errorf("%s.%s has no name in JSON", typ.Name(), field.Name)
			}
			if text := d.fields[field.Name]; !isSentence(text) {
				t.Errorf("%s.%s: the text is %q; write what it does, in whole sentences", typ.Name(), field.Name, text)
			}
			check(field.Type)
		}
	}
	modules := 0
	for _, id := range caddy.Modules() {
		info, err := caddy.GetModule(id)
		if err != nil {
			t.Fatal(err)
		}
		if typ := reflect.TypeOf(info.New()); typ.Kind() == reflect.Pointer && strings.HasPrefix(typ.Elem().PkgPath(), thisModule) {
			modules++
			check(typ)
		}
	}
	if modules != 8 || len(seen) < 32 {
		t.Errorf("%d modules with %d types are checked, not 8 with at least 32", modules, len(seen))
	}
}

// thisModule begins the paths of the packages of this Go module.
const thisModule = "github.com/caddy-notify/caddy-notify/"

// isSentence reports whether a comment is whole sentences, or ends with an example.
func isSentence(text string) bool {
	text = strings.TrimSpace(text)
	lines := strings.Split(text, "\n")
	return strings.HasSuffix(text, ".") || text != "" && strings.HasPrefix(lines[len(lines)-1], "\t")
}

// checkRegistrations checks that the website finds the modules that a file registers: it
// reads the source, and accepts no argument but T{} and new(T).
func checkRegistrations(t *testing.T, file *ast.File) {
	t.Helper()
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok || len(call.Args) != 1 {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "RegisterModule" {
			return true
		}
		switch arg := call.Args[0].(type) {
		case *ast.CompositeLit:
			return true
		case *ast.CallExpr:
			if f, ok := arg.Fun.(*ast.Ident); ok && f.Name == "new" {
				return true
			}
		}
		t.Error("caddy.RegisterModule: the argument is neither new(T) nor T{}, so that Caddy's website does not find the module")
		return true
	})
}

// typeDoc has the comments of a type and its fields.
type typeDoc struct {
	text   string
	fields map[string]string
}

// readTypeDocs reads the comments of the types of the package in a folder.
func readTypeDocs(t *testing.T, folder string) map[string]typeDoc {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	docs := map[string]typeDoc{}
	for _, name := range names {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		checkRegistrations(t, file)
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				typ, ok := spec.(*ast.TypeSpec)
				if !ok {
					continue
				}
				d := typeDoc{text: gen.Doc.Text() + typ.Doc.Text(), fields: map[string]string{}}
				if s, ok := typ.Type.(*ast.StructType); ok {
					for _, field := range s.Fields.List {
						for _, name := range field.Names {
							d.fields[name.Name] = field.Doc.Text()
						}
					}
				}
				docs[typ.Name.Name] = d
			}
		}
	}
	return docs
}
