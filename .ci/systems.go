//go:build ignore

// Systems checks that the program compiles for other systems, without compiling it: it reads
// the types of all packages that each system has, down to the standard library, with the sizes
// of its processor. That finds what differs by system in Go's code, a name or a file that one
// of them lacks or a number that is too large for 32 bits, in a tenth of the time that a
// compiler takes. What assemblers and linkers find is left to the release.
//
//	go run .ci/systems.go OS/ARCH... -- PACKAGES
//
// GOFLAGS say the rest, such as -modfile.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
)

func main() {
	log.SetFlags(0)
	i := slices.Index(os.Args, "--")
	if i < 2 || i == len(os.Args)-1 {
		log.Fatal("usage: go run .ci/systems.go OS/ARCH... -- PACKAGES")
	}
	systems, packages := os.Args[1:i], os.Args[i+1:]
	failed := make([]error, len(systems))
	var all sync.WaitGroup
	turns := make(chan struct{}, runtime.GOMAXPROCS(0)) // each needs some hundred MB
	for n, system := range systems {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			number, err := check(system, packages)
			if err == nil {
				fmt.Printf("%s: %d packages\n", system, number)
			}
			failed[n] = err
		})
	}
	all.Wait()
	if err := errors.Join(failed...); err != nil {
		log.Fatal(err)
	}
}

// A listed package is what go list prints of it.
type listed struct {
	ImportPath, Dir string
	GoFiles         []string
	ImportMap       map[string]string
	Module          *struct{ GoVersion string }
	Standard        bool
}

// check reads the types of the packages for a system, and returns how many there are.
func check(system string, packages []string) (int, error) {
	goos, arch, _ := strings.Cut(system, "/")
	arch, arm, _ := strings.Cut(arch, "/")
	list := exec.Command("go", append([]string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,Module,Standard"}, packages...)...)
	list.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+arch, "GOARM="+arm)
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, err
	}
	if err := list.Start(); err != nil {
		return 0, err
	}
	checked := checked{"unsafe": types.Unsafe}
	var wrong []error
	sizes := types.SizesFor("gc", arch)
	for decoder := json.NewDecoder(out); ; {
		var p listed
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return 0, fmt.Errorf("%s: go list: %w", system, errors.Join(err, list.Wait()))
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		config := types.Config{
			Importer:         imports{checked, p.ImportMap},
			Sizes:            sizes,
			IgnoreFuncBodies: p.Standard, // those are compiled by Go's authors
			Error:            func(err error) { wrong = append(wrong, fmt.Errorf("%s: %w", system, err)) },
		}
		if p.Module != nil && p.Module.GoVersion != "" {
			config.GoVersion = "go" + p.Module.GoVersion
		}
		files := token.NewFileSet()
		var parsed []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(files, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				return 0, err
			}
			parsed = append(parsed, file)
		}
		checked[p.ImportPath], _ = config.Check(p.ImportPath, files, parsed, nil) // Error has its errors
		if len(wrong) > 0 {
			_ = list.Process.Kill()
			break
		}
	}
	if err := list.Wait(); len(wrong) == 0 && err != nil {
		return 0, fmt.Errorf("%s: go list: %w", system, err)
	}
	return len(checked), errors.Join(wrong...)
}

// checked has the types of packages by their paths. go list -deps prints a package after all
// that it imports.
type checked map[string]*types.Package

// imports finds what one package imports, whose paths can have other names there.
type imports struct {
	checked
	names map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if name, ok := i.names[path]; ok {
		path = name
	}
	if p := i.checked[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}
