package lazyregexp_test

import (
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestTexts compiles the regular expressions of all calls of lazyregexp.New and
// notifier's Param.Match in this module, since a program compiles them only when
// it uses them.
func TestTexts(t *testing.T) {
	found := 0
	err := filepath.WalkDir("../..", func(dir string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil {
			return err
		}
		fset := token.NewFileSet()
		var files []*ast.File
		for _, name := range names {
			switch filepath.Base(name) {
			case "lazyregexp.go", "schema_param.go", // New, and Param.Match
				"native.go", "schema_hint.go": // see TestNatives and TestHints in package services
				continue
			}
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(fset, name, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
			}
			files = append(files, f)
		}
		constants := constantsOf(files)
		for _, f := range files {
			ast.Inspect(f, func(n ast.Node) bool {
				call, ok := n.(*ast.CallExpr)
				if !ok || len(call.Args) != 1 || !takesPattern(call.Fun) {
					return true
				}
				found++
				text, ok := value(call.Args[0], constants)
				if !ok {
					t.Errorf("%s: the regular expression is not constant, so no test has compiled it", fset.Position(call.Pos()))
				} else if _, err := regexp.Compile(text); err != nil {
					t.Errorf("%s: %v", fset.Position(call.Pos()), err)
				}
				return true
			})
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 200 {
		t.Errorf("found only %d regular expressions", found)
	}
}

// takesPattern reports whether a function takes a regular expression: whether
// it is lazyregexp.New, or the method Match of the result of another call.
func takesPattern(f ast.Expr) bool {
	s, ok := f.(*ast.SelectorExpr)
	if !ok {
		return false
	}
	if s.Sel.Name == "Match" {
		_, ok = s.X.(*ast.CallExpr)
		return ok
	}
	x, ok := s.X.(*ast.Ident)
	return ok && x.Name == "lazyregexp" && s.Sel.Name == "New"
}

// constantsOf returns the values of the constants of a package.
func constantsOf(files []*ast.File) map[string]ast.Expr {
	out := map[string]ast.Expr{}
	for _, f := range files {
		ast.Inspect(f, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok {
				for i, name := range s.Names {
					if i < len(s.Values) {
						out[name.Name] = s.Values[i]
					}
				}
			}
			return true
		})
	}
	return out
}

// value returns the value of a constant expression of strings.
func value(e ast.Expr, constants map[string]ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
	case *ast.BinaryExpr:
		x, ok := value(e.X, constants)
		y, also := value(e.Y, constants)
		return x + y, ok && also && e.Op == token.ADD
	case *ast.ParenExpr:
		return value(e.X, constants)
	case *ast.Ident:
		if x := constants[e.Name]; x != nil {
			return value(x, constants)
		}
	}
	return "", false
}
