//go:build ignore

// Passes counts what one message passes in a gateway: it builds the program with counters, runs
// it without a message and with one, and prints the functions, files and packages that only the
// second run has entered. For each room it prints the doors: the exported methods that others
// have called. It fails if the message passes more files than -files allows, or enters a room
// more often than -doors.
//
//	go run .ci/passes.go [-v]
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

const module = "github.com/caddy-notify/caddy-notify/"

// rooms are the packages whose doors are counted.
var rooms = []string{
	"gateway/alerting", "gateway/heartbeat", "gateway/device", "gateway/inbox", "gateway/saved", "gateway/ask", "gateway/ruler",
	"gateway/planned", "gateway/tallystore", "gateway/outbox",
}

const config = `{
	admin off
	auto_https off
	persist_config off
	notify {
		queue {
			path %s
		}
		key ops {
			url json://%s
			dedupe 5m
		}
	}
}
http://%s {
	bind 127.0.0.1
	notify
}
`

func main() {
	log.SetFlags(0)
	maxFiles := flag.Int("files", 1000, "how many files a message may pass")
	maxDoors := flag.Int("doors", 100, "how often a message may enter a room")
	verbose := flag.Bool("v", false, "print each function")
	flag.Parse()
	if err := run(*maxFiles, *maxDoors, *verbose); err != nil {
		log.Fatal(err)
	}
}

func run(maxFiles, maxDoors int, verbose bool) error {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	dir, err := os.MkdirTemp("", "passes")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	program := filepath.Join(dir, "caddy")
	build := exec.CommandContext(ctx, "go", "build", "-cover", "-coverpkg="+module+"...", "-ldflags=-s -w", "-o", program, "./cmd/caddy")
	build.Stderr = os.Stderr
	if err := build.Run(); err != nil {
		return fmt.Errorf("building the program: %w", err)
	}
	var idle, all map[function]bool
	var failed [2]error
	var both sync.WaitGroup // they mostly wait
	both.Go(func() { idle, failed[0] = entered(ctx, program, filepath.Join(dir, "idle"), false) })
	both.Go(func() { all, failed[1] = entered(ctx, program, filepath.Join(dir, "message"), true) })
	both.Wait()
	if err := errors.Join(failed[:]...); err != nil {
		return err
	}
	maps.DeleteFunc(all, func(f function, _ bool) bool { return idle[f] })
	return report(all, maxFiles, maxDoors, verbose)
}

// A function is the name of a function, with its receiver, and its file below the module.
type function struct{ file, name string }

// entered returns the functions that a run of the program enters.
func entered(ctx context.Context, program, dir string, message bool) (map[function]bool, error) {
	counters := filepath.Join(dir, "counters")
	if err := os.MkdirAll(counters, 0o700); err != nil {
		return nil, err
	}
	var arrived atomic.Int32
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { arrived.Add(1) }))
	defer target.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	address := listener.Addr().String()
	_ = listener.Close()
	file := filepath.Join(dir, "Caddyfile")
	text := fmt.Sprintf(config, filepath.Join(dir, "queue"), target.Listener.Addr(), address)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	caddy := exec.CommandContext(ctx, program, "run", "--config", file)
	caddy.Env = append(os.Environ(), "GOCOVERDIR="+counters, "HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CONFIG_HOME="+dir)
	var said bytes.Buffer
	caddy.Stderr = &said
	if err := caddy.Start(); err != nil {
		return nil, err
	}
	err = use(ctx, "http://"+address, message)
	if err == nil && (arrived.Load() == 1) != message {
		err = fmt.Errorf("%d messages have arrived", arrived.Load())
	}
	_ = caddy.Process.Signal(syscall.SIGTERM)
	if stopped := caddy.Wait(); err == nil {
		err = stopped
	}
	if err != nil {
		return nil, fmt.Errorf("running the program: %w\n%s", err, said.Bytes())
	}
	out, err := exec.CommandContext(ctx, "go", "tool", "covdata", "func", "-i="+counters).Output()
	if err != nil {
		return nil, fmt.Errorf("reading the counters: %w", err)
	}
	found := map[function]bool{}
	for line := range strings.Lines(string(out)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[2] == "0.0%" || words[0] == "total" {
			continue
		}
		where, _, _ := strings.Cut(strings.TrimPrefix(words[0], module), ":")
		found[function{where, words[1]}] = true
	}
	return found, nil
}

// use waits until the gateway answers, and sends it a message. A second without one before and
// after that is in both runs.
func use(ctx context.Context, address string, message bool) error {
	get := func() error {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, address+"/notify/status", nil)
		if err != nil {
			return err
		}
		answer, err := http.DefaultClient.Do(r)
		if err == nil {
			_ = answer.Body.Close()
		}
		return err
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		if err := get(); err == nil {
			break
		} else if time.Now().After(deadline) {
			return err
		}
	}
	const idle = 6 * time.Second // each job that runs at an interval runs once
	time.Sleep(idle)
	if message {
		body := strings.NewReader(`{"title": "Disk", "body": "91% full", "type": "failure"}`)
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/notify/ops", body)
		if err != nil {
			return err
		}
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return err
		}
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK {
			return fmt.Errorf("the gateway answers with status %d", answer.StatusCode)
		}
	}
	time.Sleep(2 * time.Second)
	return nil
}

// report prints what a message enters.
func report(all map[function]bool, maxFiles, maxDoors int, verbose bool) error {
	files := map[string][]string{}
	packages := map[string]int{}
	for f := range all {
		if files[f.file] == nil {
			packages[path.Dir(f.file)]++
		}
		files[f.file] = append(files[f.file], f.name)
	}
	fmt.Printf("a message with a queue and rules passes %d functions in %d files of %d packages\n", len(all), len(files), len(packages))
	if verbose {
		for _, file := range slices.Sorted(maps.Keys(files)) {
			fmt.Printf("%s: %s\n", file, strings.Join(slices.Sorted(slices.Values(files[file])), " "))
		}
	}
	var wrong []string
	if len(files) > maxFiles {
		wrong = append(wrong, fmt.Sprintf("a message passes %d files; at most %d are allowed", len(files), maxFiles))
	}
	for _, room := range rooms {
		doors, err := doorsOf(room, files)
		if err != nil {
			return err
		}
		if len(doors) > 0 {
			fmt.Printf("%s is entered %d times: %s\n", room, len(doors), strings.Join(doors, ", "))
		}
		if len(doors) > maxDoors {
			wrong = append(wrong, fmt.Sprintf("a message enters %s %d times; at most %d are allowed", room, len(doors), maxDoors))
		}
	}
	if wrong != nil {
		return fmt.Errorf("%s", strings.Join(wrong, "\n"))
	}
	return nil
}

// doorsOf returns the exported methods of a room that were entered and that no other function of
// the room that was entered calls, except those that return at once: a name, a field.
func doorsOf(room string, files map[string][]string) ([]string, error) {
	doors, callers := map[string]string{}, map[string]map[string]bool{}
	for file, names := range files {
		if path.Dir(file) != room {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			return nil, err
		}
		for _, d := range parsed.Decls {
			f, ok := d.(*ast.FuncDecl)
			if !ok || f.Body == nil || !slices.Contains(names, nameOf(f)) {
				continue
			}
			if f.Recv != nil && f.Name.IsExported() && !returnsAtOnce(f) {
				doors[nameOf(f)] = f.Name.Name
			}
			ast.Inspect(f.Body, func(n ast.Node) bool {
				if call, ok := n.(*ast.CallExpr); ok {
					called := ""
					switch fun := call.Fun.(type) {
					case *ast.Ident:
						called = fun.Name
					case *ast.SelectorExpr:
						called = fun.Sel.Name
					}
					if callers[called] == nil {
						callers[called] = map[string]bool{}
					}
					callers[called][nameOf(f)] = true
				}
				return true
			})
		}
	}
	maps.DeleteFunc(doors, func(door, name string) bool {
		by := maps.Clone(callers[name])
		delete(by, door)
		return len(by) > 0
	})
	return slices.Sorted(maps.Keys(doors)), nil
}

// nameOf returns the name of a function as go tool covdata prints it.
func nameOf(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	star, t := "", f.Recv.List[0].Type
	if p, ok := t.(*ast.StarExpr); ok {
		star, t = "*", p.X
	}
	if index, ok := t.(*ast.IndexExpr); ok {
		t = index.X
	}
	if id, ok := t.(*ast.Ident); ok {
		return star + id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

func returnsAtOnce(f *ast.FuncDecl) bool {
	if len(f.Body.List) != 1 {
		return false
	}
	r, ok := f.Body.List[0].(*ast.ReturnStmt)
	if !ok {
		return false
	}
	calls := false
	ast.Inspect(r, func(n ast.Node) bool {
		_, call := n.(*ast.CallExpr)
		calls = calls || call
		return true
	})
	return !calls
}
