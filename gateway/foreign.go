package gateway

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// foreign counts the records and deliveries that another version of the program has stored and this
// version does not know. They stay unchanged.
type foreign struct {
	mu      sync.Mutex
	records map[queue.Hash]byte    // with their kinds
	held    map[queue.JobID]string // with their rules
	told    int                    // how many the last line in the log was about
}

// maxForeign is the maximum number of records and deliveries that are counted.
const maxForeign = 100_000

// noteRecord notes a record of an unknown kind.
func (f *foreign) noteRecord(name queue.Hash, data []byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.records == nil {
		f.records = map[queue.Hash]byte{}
	}
	if len(f.records) < maxForeign && len(data) > 0 {
		f.records[name] = data[0]
	}
}

// noteHeld notes the jobs that unknown rules hold.
func (f *foreign) noteHeld(held []queue.Job) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held == nil {
		f.held = map[queue.JobID]string{}
	}
	for i := range held {
		if len(f.held) < maxForeign {
			f.held[held[i].JobID] = held[i].Rule
		}
	}
}

// tell logs the counts if they have grown.
func (f *foreign) tell(log *zap.Logger) {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.records) + len(f.held)
	if n <= f.told {
		return
	}
	f.told = n
	var kinds, rules []string
	for _, kind := range slices.Compact(slices.Sorted(maps.Values(f.records))) {
		kinds = append(kinds, fmt.Sprintf("%q", kind))
	}
	for _, rule := range slices.Compact(slices.Sorted(maps.Values(f.held))) {
		rules = append(rules, fmt.Sprintf("%q", rule))
	}
	log.Warn("another version of the program has stored what this one does not know; it stays as it is, for gateways of that version: "+
		"update this gateway, or start that version again",
		zap.Int("records", len(f.records)), zap.String("kinds", strings.Join(kinds, ", ")),
		zap.Int("deliveries", len(f.held)), zap.String("rules", strings.Join(rules, ", ")))
}
