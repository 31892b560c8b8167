//go:build ignore

// Licenses prints the licenses of all that a program of this repository contains: of Go, and of each
// module that is linked into it. The modules are read from the program itself, and their texts from
// the module cache. Where a license asks for the source, as the Mozilla and the Eclipse Public License
// do, it says where that is. It fails for a module without a license, or with one that it does not know.
//
//	go run .ci/licenses.go [-modfile newest.mod] PROGRAM
package main

import (
	"bufio"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
)

func main() {
	log.SetFlags(0)
	modfile := flag.String("modfile", "newest.mod", "the go.mod that the program was built with")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: go run .ci/licenses.go [-modfile FILE] PROGRAM")
	}
	out := bufio.NewWriter(os.Stdout)
	if err := write(out, flag.Arg(0), *modfile); err != nil {
		log.Fatal(err)
	}
	if err := out.Flush(); err != nil {
		log.Fatal(err)
	}
}

// module is what go list says of the module of a package.
type module struct {
	Path, Version, Dir string
	Main               bool
}

// licensed is a module with the texts of its licenses.
type licensed struct {
	name, version string
	kind          string // one or more names
	source        string // where its source is; "" if its license does not ask for it
	texts         []string
}

func write(w io.Writer, program, modfile string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return err
	}
	files, err := licenseFiles(info, modfile)
	if err != nil {
		return err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return err
	}
	all := []*licensed{}
	add := func(name, version string, files []string) error {
		l, err := read(name, version, files)
		if err == nil {
			all = append(all, l)
		}
		return err
	}
	errs := []error{add("Go", info.GoVersion, []string{filepath.Join(strings.TrimSpace(string(goroot)), "LICENSE")})}
	errs = append(errs, add(info.Main.Path, "", files[info.Main.Path]))
	for _, m := range info.Deps {
		if m.Replace != nil {
			errs = append(errs, fmt.Errorf("%s is replaced, so its license is not that of a release", m.Path))
			continue
		}
		errs = append(errs, add(m.Path, m.Version, files[m.Path]))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}

	fmt.Fprintf(w, "This program contains Go and %d modules. Their licenses:\n\n", len(info.Deps)+1)
	for _, l := range all {
		fmt.Fprintf(w, "  %s: %s\n", strings.TrimSpace(l.name+" "+l.version), l.kind)
	}
	fmt.Fprint(w, "\nThese are contained unchanged, and their licenses ask to say where their source is.\n"+
		"\"go mod download MODULE@VERSION\" fetches it, too:\n\n")
	for _, l := range all {
		if l.source != "" {
			fmt.Fprintf(w, "  %s %s: %s\n", l.name, l.version, l.source)
		}
	}
	// Many have the same text.
	of := map[string][]string{}
	var texts []string
	for _, l := range all {
		for _, text := range l.texts {
			if of[text] == nil {
				texts = append(texts, text)
			}
			of[text] = append(of[text], strings.TrimSpace(l.name+" "+l.version))
		}
	}
	for _, text := range texts {
		fmt.Fprintf(w, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 80), strings.Join(of[text], "\n"), text)
	}
	return nil
}

// licenseFiles returns the files with licenses that concern the packages in a program, by module:
// those in the folder of a package, and in the folders above it.
func licenseFiles(info *debug.BuildInfo, modfile string) (map[string][]string, error) {
	list := exec.Command("go", "list", "-modfile", modfile, "-deps", "-json=Dir,Module", info.Path)
	list.Env = os.Environ()
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS", "GOARCH", "GOARM", "CGO_ENABLED":
			list.Env = append(list.Env, s.Key+"="+s.Value)
		case "-tags":
			list.Env = append(list.Env, "GOFLAGS=-tags="+s.Value)
		}
	}
	list.Stderr = os.Stderr
	text, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w", err)
	}
	linked := map[string]string{info.Main.Path: ""} // versions
	for _, m := range info.Deps {
		linked[m.Path] = m.Version
	}
	files, seen := map[string][]string{}, map[string]bool{}
	for d := json.NewDecoder(bytes.NewReader(text)); ; {
		var p struct {
			Dir    string
			Module *module
		}
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		if p.Module == nil {
			continue // of Go
		}
		version, ok := linked[p.Module.Path]
		if !ok || !p.Module.Main && version != p.Module.Version {
			return nil, fmt.Errorf("%s has %s with version %q; the program was built with another file than %s",
				p.Module.Path, p.Module.Version, version, modfile)
		}
		for dir := p.Dir; len(dir) >= len(p.Module.Dir) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			names, err := os.ReadDir(dir)
			if err != nil {
				return nil, err
			}
			for _, e := range names {
				if isLicense.MatchString(e.Name()) && e.Type().IsRegular() {
					files[p.Module.Path] = append(files[p.Module.Path], filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	for _, list := range files {
		slices.Sort(list)
	}
	return files, nil
}

var isLicense = regexp.MustCompile(`(?i)^(un)?(licen[cs]es?|copying|copyright|notice|patents|authors)([._-].*)?$`)

// kinds are words of licenses that name them. Authors and notices have none.
var kinds = []struct{ words, name string }{
	{"mozilla public license", "MPL-2.0"},
	{"eclipse public license", "EPL-2.0"},
	{"apache license", "Apache-2.0"},
	{"permission is hereby granted, free of charge", "MIT"},
	{"permission to use, copy, modify, and/or distribute this software", "ISC"},
	{"permission to use, copy, modify, and distribute this software", "ISC"},
	{"redistribution and use in source and binary forms", "BSD"},
	{"this is free and unencumbered software", "Unlicense"},
	{"cc0 1.0 universal", "CC0-1.0"},
}

// refused are words of licenses that the program cannot be distributed with as it is.
var refused = []string{
	"gnu general public license", "gnu affero general public license", "server side public license", "business source license",
}

// read reads the licenses of a module.
func read(name, version string, files []string) (*licensed, error) {
	l := &licensed{name: name, version: version}
	found := map[string]bool{}
	seen := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		words := strings.ToLower(strings.Join(strings.Fields(string(text)), " "))
		if seen[words] {
			continue
		}
		seen[words] = true
		l.texts = append(l.texts, strings.TrimRight(string(text), "\n"))
		for _, k := range kinds {
			if strings.Contains(words, k.words) {
				found[k.name] = true
			}
		}
		first := words[:min(len(words), 200)] // other licenses are compatible with those, and say so
		for _, r := range refused {
			if strings.Contains(first, r) {
				return nil, fmt.Errorf("%s has the license %q (%s)", name, r, file)
			}
		}
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s %s has no license that is known here: %q", name, version, files)
	}
	l.kind = strings.Join(slices.Sorted(maps.Keys(found)), ", ")
	if found["MPL-2.0"] || found["EPL-2.0"] {
		var err error
		if l.source, err = source(name, version); err != nil {
			return nil, err
		}
	}
	return l, nil
}

// repositories are those of modules whose path does not tell it, for a cache that does not know them.
var repositories = map[string]string{
	"go.mau.fi/util":         "https://github.com/mautrix/go-util",
	"maunium.net/go/mautrix": "https://github.com/mautrix/go",
}

// source returns where the source of a module is.
func source(name, version string) (string, error) {
	text, err := exec.Command("go", "mod", "download", "-json", name+"@"+version).Output()
	if err != nil {
		return "", fmt.Errorf("go mod download %s@%s: %w", name, version, err)
	}
	var m struct {
		Origin struct{ URL, Hash string }
	}
	if err := json.Unmarshal(text, &m); err != nil {
		return "", err
	}
	if m.Origin.URL != "" {
		return strings.TrimSpace(m.Origin.URL + " " + m.Origin.Hash), nil
	}
	if url := repositories[name]; url != "" {
		return url, nil
	}
	if parts := strings.Split(name, "/"); parts[0] == "github.com" && len(parts) >= 3 {
		return "https://" + strings.Join(parts[:3], "/"), nil
	}
	return "", fmt.Errorf("%s: its license asks to say where the source is; add that to .ci/licenses.go", name)
}
