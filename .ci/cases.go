//go:build ignore

// Cases prints a regular expression of the names of all tests below the given folders
// that do less with the race detector, and the folders that have such tests: those that
// use package racetest, or the flags full and soak of the safety tests, directly or
// through functions of their package.
package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	folders := map[string][]string{} // the test files of each
	for _, root := range os.Args[1:] {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if strings.HasSuffix(path, "_test.go") {
				folders[filepath.Dir(path)] = append(folders[filepath.Dir(path)], path)
			}
			return err
		})
		if err != nil {
			log.Fatal(err)
		}
	}
	var names, with []string
	for _, folder := range slices.Sorted(maps.Keys(folders)) {
		found, err := tests(folders[folder])
		if err != nil {
			log.Fatal(err)
		}
		if len(found) > 0 {
			names, with = append(names, found...), append(with, "./"+folder)
		}
	}
	slices.Sort(names)
	fmt.Printf("^(%s)$\n%s\n", strings.Join(slices.Compact(names), "|"), strings.Join(with, " "))
}

// tests returns the names of the tests in the files of a folder that do less.
func tests(files []string) (names []string, err error) {
	uses := map[string]map[string]bool{} // what the functions with a name mention
	for _, path := range files {
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range file.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil {
				continue
			}
			if uses[f.Name.Name] == nil {
				uses[f.Name.Name] = map[string]bool{}
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == "LeaveToCI" {
					return false // with CI, the test does the same in both
				}
				if id, ok := n.(*ast.Ident); ok {
					uses[f.Name.Name][id.Name] = true
				}
				return true
			})
		}
	}
	less := map[string]bool{"racetest": true, "queuetest": true, "full": true, "soak": true}
	for found := true; found; {
		found = false
		for name, mentioned := range uses {
			for other := range mentioned {
				if less[other] && !less[name] && name != "TestMain" {
					less[name], found = true, true
				}
			}
		}
	}
	for name := range uses {
		if less[name] && strings.HasPrefix(name, "Test") {
			names = append(names, name)
		}
	}
	return names, nil
}
