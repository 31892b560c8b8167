package queuetest

import (
	"bufio"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// The events that child processes of a test print.
const (
	Accepted  = "accepted"
	Delivered = "delivered"
)

// Printer prints events of a child process for [Reports]. It is safe for
// concurrent use.
type Printer struct{ mu sync.Mutex }

// Print prints that a message was accepted or delivered.
func (p *Printer) Print(event string, id uuid.UUID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Println(event, id)
}

// Reports counts the events that child processes have printed. The zero value is
// ready for use.
type Reports struct {
	mu     sync.Mutex
	counts map[string]map[uuid.UUID]int
}

// Start starts a child process and reads its events. wait waits until the process
// has ended. Any other output fails the test.
func (r *Reports) Start(t *testing.T, cmd *exec.Cmd) (wait func()) {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			event, text, _ := strings.Cut(lines.Text(), " ")
			id, err := uuid.Parse(text)
			if err != nil || event != Accepted && event != Delivered {
				t.Error(lines.Text())
				continue
			}
			r.add(event, id)
		}
	}()
	return func() {
		<-done
		_ = cmd.Wait() // the test has killed it
	}
}

func (r *Reports) add(event string, id uuid.UUID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.counts == nil {
		r.counts = map[string]map[uuid.UUID]int{Accepted: {}, Delivered: {}}
	}
	r.counts[event][id]++
}

// Accepted returns the number of accepted messages.
func (r *Reports) Accepted() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.counts[Accepted])
}

// Wait waits until n more messages are accepted.
func (r *Reports) Wait(t *testing.T, n int) {
	t.Helper()
	n += r.Accepted()
	eventually(t, "messages are accepted", func() bool { return r.Accepted() >= n || t.Failed() })
}

// Lost returns how many accepted messages are neither delivered nor in the
// store, and how many were delivered more than once. Call it after all
// processes have ended.
func (r *Reports) Lost(t *testing.T, s queue.Store) (lost, twice int) {
	t.Helper()
	for id := range r.counts[Accepted] {
		if r.counts[Delivered][id] > 1 {
			twice++
		}
		if r.counts[Delivered][id] > 0 {
			continue
		}
		_, release, err := s.Load(t.Context(), id)
		if err != nil {
			lost++
			continue
		}
		release()
	}
	return lost, twice
}
