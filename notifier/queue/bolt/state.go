package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// state is what a second file knows about the database, so that a start after
// its loss can tell what is lost. It is written in place, and has always the
// same length, so that it can be written when the disk is full.
type state struct {
	waiting int   // about how many deliveries wait
	written int64 // bytes of the database that have been written; see reserve
}

const stateFormat = "caddy-notify queue\nwaiting %010d\nwritten %019d\n"

// When the state is written: at most once in stateSoon if half of the waiting
// deliveries are gone or as many have come, and in stateLate if their number has
// changed at all.
const (
	stateSoon = time.Second
	stateLate = time.Minute
)

func (s *Store) statePath() string { return filepath.Join(s.path, "state") }

// readState reports false if there is no state.
func (s *Store) readState() (st state, ok bool) {
	b, err := os.ReadFile(s.statePath())
	if err != nil {
		return state{}, false
	}
	if _, err := fmt.Sscanf(string(b), stateFormat, &st.waiting, &st.written); err != nil {
		return state{}, true
	}
	return st, true
}

func (s *Store) writeState(st state) error {
	f, err := os.OpenFile(s.statePath(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, stateFormat, st.waiting, st.written); err != nil || s.noSync {
		return err
	}
	return f.Sync()
}

// remember writes the state if that is due. Only the writer calls it, or Close
// with closing set.
func (s *Store) remember(closing bool) {
	s.index.mu.Lock()
	now := state{s.index.queued + s.index.sending, s.reserve.written}
	s.index.mu.Unlock()
	before := s.remembered
	more, less := max(now.waiting, before.waiting), min(now.waiting, before.waiting)
	interval := stateLate
	switch {
	case now == before:
		return
	case closing || s.rememberedAt.IsZero() || now.written != before.written:
		interval = 0
	case more >= 2*less:
		interval = stateSoon
	}
	if wait := interval - time.Since(s.rememberedAt); wait > 0 {
		if s.rememberLate == nil || interval == stateSoon {
			s.rememberLate = time.After(wait)
		}
		return
	}
	s.rememberLate = nil
	s.rememberedAt = time.Now()
	if err := s.writeState(now); err != nil {
		s.log.Warn("writing the state of the queue", zap.Error(err))
		return
	}
	if before == (state{}) {
		_ = syncDir(s.path) // the file is new
	}
	s.remembered = now
}

// logMissing logs that there was a database, or may have been one.
func (s *Store) logMissing(known bool) {
	if known {
		s.log.Error("queue.db is missing: what was in the queue is lost, and the queue begins empty; if there is a back-up, stop the gateway and restore it",
			zap.String("folder", s.path), zap.Int("waiting", s.remembered.waiting))
	} else {
		s.log.Warn("the folder of the queue has a key but no queue.db: if there were messages in the queue, they are lost", zap.String("folder", s.path))
	}
}

// logDifference logs how many deliveries were lost with a damaged database.
func (s *Store) logDifference(waiting, found int) {
	if lost := waiting - found; lost > 0 {
		s.log.Error("deliveries that waited are lost with the damaged part of the queue's store; the numbers are approximate",
			zap.Int("waited", waiting), zap.Int("found", found), zap.Int("lost", lost))
	}
}
