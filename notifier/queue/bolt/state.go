package bolt

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"go.uber.org/zap"
)

// state is the content of a second file about the database. If the database is lost, the next start
// uses it to say what is lost. It is written in place and always has the same length, so that it
// can be written when the disk is full.
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

func (dir *folder) statePath() string { return filepath.Join(dir.path, "state") }

// readState reports false if there is no state.
func (dir *folder) readState() (st state, ok bool) {
	b, err := os.ReadFile(dir.statePath())
	if err != nil {
		return state{}, false
	}
	if _, err := fmt.Sscanf(string(b), stateFormat, &st.waiting, &st.written); err != nil {
		return state{}, true
	}
	return st, true
}

func (dir *folder) writeState(st state) error {
	f, err := os.OpenFile(dir.statePath(), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, stateFormat, st.waiting, st.written); err != nil || dir.noSync {
		return err
	}
	return f.Sync()
}

// remember writes the state if that is due. Only the writer calls it, or Close
// with closing set.
func (w *writer) remember(closing bool) {
	now := state{w.index.countWaiting(), w.reserve.written}
	before := w.remembered
	more, less := max(now.waiting, before.waiting), min(now.waiting, before.waiting)
	interval := stateLate
	switch {
	case now == before:
		return
	case closing || w.rememberedAt.IsZero() || now.written != before.written:
		interval = 0
	case more >= 2*less:
		interval = stateSoon
	}
	if wait := interval - time.Since(w.rememberedAt); wait > 0 {
		if w.rememberLate == nil || interval == stateSoon {
			w.rememberLate = time.After(wait)
		}
		return
	}
	w.rememberLate = nil
	w.rememberedAt = time.Now()
	if err := w.writeState(now); err != nil {
		w.log.Warn("writing the state of the queue", zap.Error(err))
		return
	}
	if before == (state{}) {
		_ = syncDir(w.path) // the file is new
	}
	w.remembered = now
}

// logMissing logs that there was a database, or may have been one.
func (w *writer) logMissing(known bool) {
	if known {
		w.log.Error("queue.db is missing: what was in the queue is lost, and the queue begins empty; if there is a back-up, stop the gateway "+
			"and restore it",
			zap.String("folder", w.path), zap.Int("waiting", w.remembered.waiting))
	} else {
		w.log.Warn("the folder of the queue has a key but no queue.db: if there were messages in the queue, they are lost",
			zap.String("folder", w.path))
	}
}

// logDifference logs how many deliveries were lost with a damaged database.
func (w *writer) logDifference(waiting, found int) {
	if lost := waiting - found; lost > 0 {
		w.log.Error("deliveries that waited are lost with the damaged part of the queue's store; the numbers are approximate",
			zap.Int("waited", waiting), zap.Int("found", found), zap.Int("lost", lost))
	}
}
