package bolt

import (
	"errors"
	"os"
	"runtime"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// bbolt never overwrites a page that is in use: a commit writes copies of the pages that it
// changes. So a delivery that ends needs free pages first, and a store without free pages could
// never remove a delivered message. The reserve is pages that have been written before and are not
// in use. Writing them again needs no room on the disk. On file systems that copy on write, such as
// btrfs and ZFS, this does not hold.
const (
	minReserve    = 4 << 20 / pageSize // pages
	reservePerJob = 1 << 10            // bytes for each waiting job, whose record moves when it ends
	growStep      = 4 << 20 / pageSize // pages by which the file grows at least
)

// The approximate maximum number of pages that a change needs without its content: one in each
// bucket, and the pages above them.
const (
	pagesPerCommit  = 32
	pagesPerMessage = 8
	pagesPerJob     = 2
	pagesPerResult  = 10
	pagesPerForget  = 10
)

// reserve counts the pages that can be written even if the disk is full. Only
// the writer uses it.
type reserve struct {
	mapped  int64           // bytes of the file that bbolt has mapped, or more
	written int64           // bytes from the beginning of the file that have been written
	failed  time.Time       // when the file could not be extended
	err     error           // why
	tight   bool            // the reserve is smaller than it should be
	told    map[string]bool // destinations that got a message about a given-up delivery since then
}

// reset begins to count for a database that has just been opened. written is the number of its
// bytes that have been written.
func (r *reserve) reset(db *bbolt.DB, written int64) {
	r.written = 0
	if info, err := os.Stat(db.Path()); err == nil {
		r.written = min(written, info.Size())
		r.mapped = mappingOf(max(info.Size(), int64(initialMapping(runtime.GOOS))))
	}
	// bbolt counts its free pages when a transaction ends.
	_ = guard(func() error {
		tx, err := db.Begin(true)
		if err != nil {
			return err
		}
		return tx.Rollback()
	})
}

// room returns the number of pages that can be written without more room on the
// disk.
func (w *writer) room(db *bbolt.DB) int {
	stats := db.Stats()
	free := stats.FreePageN
	if stats.OpenTxN == 0 {
		free += stats.PendingPageN // readers may need them
	}
	return free + int(max(w.reserve.written-end(db), 0)/pageSize)
}

// end returns the end of the part of the file that bbolt has used.
func end(db *bbolt.DB) (n int64) {
	// The function returns no error, and reads no page.
	_ = db.View(func(tx *bbolt.Tx) error { n = tx.Size(); return nil })
	return n
}

// fit refuses the changes that would use up the reserve. It returns the others, and how many of
// them the next transaction should make. A change that replaces waiting jobs frees pages only after
// it is stored, so it may use half of the reserve.
func (w *writer) fit(db *bbolt.DB, changes []*change) (rest []*change, n int) {
	need := pagesPerCommit
	for _, c := range changes {
		need += c.pages
	}
	if size := end(db) + int64(need)*pageSize; size >= w.reserve.mapped {
		w.backups.end(errBackupGrows)
		w.reserve.mapped = mappingOf(size + pageSize)
	}
	waiting := w.index.countWaiting()
	ofJobs := waiting * reservePerJob / pageSize
	want := need + minReserve + ofJobs
	if w.reserve.tight {
		want += minReserve / 4 // so that it does not change with every delivery
	}
	tight := !w.extend(db, want)
	if tight != w.reserve.tight {
		w.reserve.tight, w.reserve.told = tight, map[string]bool{}
		if tight {
			w.log.Error("the disk is full: no more messages are accepted, and results of delivered messages are not kept; what waits is delivered",
				zap.String("folder", w.path), zap.Error(w.reserve.err))
		} else {
			w.log.Info("the disk has room again, and messages are accepted", zap.String("folder", w.path))
		}
	}
	if !tight {
		return changes, len(changes)
	}
	w.backups.end(errBackupSpace)
	rest = changes[:0]
	need = pagesPerCommit
	room := w.room(db)
	for _, c := range changes {
		if c.adds && !(c.replaces && room >= need+c.pages+minReserve/2+ofJobs) {
			answer([]*change{c}, queue.ErrDiskFull)
			continue
		}
		rest = append(rest, c)
		need += c.pages
	}
	n = len(rest)
	for ; n > 1 && need > room; n-- {
		need -= rest[n-1].pages
	}
	return rest, n
}

// leavesOut reports whether e, a message about a given-up delivery, is not stored. While the disk
// is full, each destination gets one such message: one for each delivery could use up the reserve,
// and then nothing could be stored any more.
func (b *batch) leavesOut(e *queue.Entry) bool {
	if !b.tight || len(e.Jobs) == 0 {
		return false
	}
	to, r := e.Jobs[0].Destination, &b.store.reserve
	if r.told[to] || b.told[to] {
		b.store.log.Warn("no message about a delivery that is given up, because the disk is full and there was one about another",
			zap.Stringer("id", e.Message.ID))
		return true
	}
	b.told[to] = true
	b.then = append(b.then, func(*index) { r.told[to] = true })
	return false
}

// extend extends the file until this number of pages can be written. It reports false if the disk
// has no room.
func (w *writer) extend(db *bbolt.DB, pages int) bool {
	room := w.room(db)
	if room >= pages {
		return true
	}
	if time.Since(w.reserve.failed) < coolDown {
		return false
	}
	from := max(w.reserve.written, end(db))
	written, err := writeZeros(w.dbPath(), from, int64(max(pages-room, growStep))*pageSize, !w.noSync)
	w.reserve.written = from + written
	if err != nil {
		w.reserve.failed, w.reserve.err = time.Now(), err
	}
	// room is not read again: it is less while somebody reads, and that does not
	// mean that the disk is full.
	return room+int(written/pageSize) >= pages
}

// writeZeros writes n zeros to a file, starting at from. It returns the number of bytes written, in
// whole pages, even with an error.
func writeZeros(path string, from, n int64, sync bool) (written int64, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return 0, err
	}
	zeros := make([]byte, min(n, 256<<10))
	for written < n && err == nil {
		var some int
		some, err = f.WriteAt(zeros[:min(n-written, int64(len(zeros)))], from+written)
		written += int64(some)
	}
	written -= written % pageSize
	if sync {
		if e := f.Sync(); e != nil {
			written, err = 0, errors.Join(err, e)
		}
	}
	return written, errors.Join(err, f.Close())
}
