package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// errSecret is returned when nothing in the database authenticates.
var errSecret = errors.New("nothing in queue.db can be read with this secret: set the one that the queue was created with, or write it " +
	"after the new one; to begin with an empty queue, move the folder away")

// filler is a value that keeps bbolt from storing a small bucket inside the
// page that lists the buckets, where one damaged bit could cost several records
// of a message. Its key sorts first.
var (
	fillerKey = []byte{0}
	filler    = make([]byte, pageSize/4)
)

func isFiller(key []byte) bool { return len(key) == len(fillerKey) }

func (dir *folder) newPath() string { return dir.dbPath() + ".new" }

// create creates a database at newPath. fill adds content, if it is not nil.
func (d *database) create(fill func(db *bbolt.DB) error) error {
	if err := os.Remove(d.newPath()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	options := d.boltOptions()
	options.NoSync = true // until the final sync
	db, err := bbolt.Open(d.newPath(), 0o600, options)
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range buckets {
			b, err := tx.CreateBucket([]byte(name))
			if err != nil {
				return err
			}
			if err := b.Put(fillerKey, filler); err != nil {
				return err
			}
		}
		if err := d.putFormat(tx, queue.Format{}); err != nil {
			return err
		}
		return tx.Bucket([]byte(bucketMeta)).Put(keyCheck, d.sealer.Ring(bucketMeta, keyCheck, time.Now()))
	})
	if err == nil && fill != nil {
		err = fill(db)
	}
	if err == nil {
		// bbolt creates both meta pages with a list of free pages; each commit
		// writes one of them.
		err = db.Update(func(*bbolt.Tx) error { return nil })
	}
	if err == nil && !d.noSync {
		err = db.Sync()
	}
	return errors.Join(err, db.Close())
}

// replace renames the database at newPath to queue.db.
func (d *database) replace() error {
	if err := os.Rename(d.newPath(), d.dbPath()); err != nil {
		return err
	}
	return syncDir(d.path)
}

// salvage keeps a damaged database under another name, creates a new one from
// its readable records, and logs each loss.
func (w *writer) salvage(why error) error {
	old, err := openPages(w.dbPath())
	if err != nil {
		return err
	}
	defer old.f.Close()
	v := &salvager{store: w, old: old, visited: map[uint64]bool{}, finished: map[uuid.UUID]finish{}}
	if err := guard(func() error { return w.create(v.fill) }); err != nil {
		return err
	}
	aside := fmt.Sprintf("%s.damaged-%s", w.dbPath(), time.Now().UTC().Format("20060102T150405.000000Z"))
	// queue.db must exist at every moment: without it, a start after a crash would
	// create an empty queue.
	if err := os.Link(w.dbPath(), aside); err != nil {
		if err := copyFile(aside, w.dbPath()); err != nil {
			return err
		}
	}
	if err := w.replace(); err != nil {
		return err
	}
	w.log.Error("the queue's store was damaged; what could be read has been kept, and the damaged file is set aside",
		zap.String("damage", why.Error()), zap.String("file", aside), zap.Int("records", v.kept), zap.Int("lost", v.lost))
	return nil
}

func copyFile(to, from string) error {
	r, err := os.Open(from)
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(w, r)
	return errors.Join(err, w.Sync(), w.Close())
}

// salvager reads a damaged database in three steps. First it follows the tree,
// also through damaged pages that can still be parsed. Then it scans all pages,
// because a damaged pointer can lead to an older copy of a page that looks
// intact. The scan also finds records outside the tree and deleted ones.
// Finally it compares the records with each other to find missing ones.
type salvager struct {
	store   *writer
	old     *pages
	visited map[uint64]bool // damaged pages
	walker  *walker
	partial bool // the tree does not reach all messages

	db      *bbolt.DB
	tx      *bbolt.Tx
	pending int // bytes of tx
	err     error

	finished   map[uuid.UUID]finish
	kept, lost int
	refused    int // records that do not authenticate
}

type finish struct {
	time time.Time
	tree bool // it was found in the tree
}

func (v *salvager) fill(db *bbolt.DB) error {
	v.db = db
	var err error
	if v.tx, err = db.Begin(true); err != nil {
		return err
	}
	if err := errors.Join(v.read(), v.err, v.tx.Commit()); err != nil {
		return err
	}
	if v.kept == 0 && v.refused > 0 {
		return errSecret
	}
	return v.compare()
}

func (v *salvager) read() error {
	m, err := v.old.newest()
	if err != nil {
		if _, ok := errors.AsType[*damage](err); !ok {
			return err
		}
		v.partial = true
	}
	if m.pages > 0 {
		v.walker = newWalker(v.old, m)
		v.walker.leaf = func(bucket string, key, value []byte) { v.record(bucket, key, value, true) }
		v.walker.bad = v.badPage
		if err := v.walker.database(); err != nil {
			return err
		}
	}
	// Jobs first: they determine which messages are needed. Then jobs again: a dead
	// one is kept if its message exists.
	for _, names := range [][]string{{bucketJobs, bucketFinished}, {bucketMessages, bucketBodies, bucketDone}, {bucketJobs}} {
		for id := uint64(2); id < v.old.count; id++ {
			if err := v.looseLeaf(id, names, false); err != nil {
				return err
			}
		}
	}
	return nil
}

// badPage reads the parts of a damaged page that can be parsed, and visits the pages below it.
func (v *salvager) badPage(id uint64, bucket string, root bool) {
	v.partial = v.partial || root || bucket == bucketMessages
	if id < 2 || id >= v.old.count || v.visited[id] {
		return
	}
	v.visited[id] = true
	b := make([]byte, pageSize)
	if err := v.old.read(b, id); err != nil {
		v.err = errors.Join(v.err, err)
		return
	}
	flags := number.Uint16(b[8:])
	if root {
		for i := range maxElements {
			e, ok := parseElement(b, i, flagLeaf)
			if ok && len(e.value) == bucketHeader && slices.Contains(buckets, string(e.key)) {
				v.fail(v.walker.bucket(string(e.key), number.Uint64(e.value)))
			}
		}
		return
	}
	if flags != flagBranch {
		v.fail(v.looseLeaf(id, []string{bucket}, true))
	}
	if flags == flagLeaf {
		return
	}
	head := make([]byte, pageSize)
	for i := range maxElements {
		e, ok := parseElement(b, i, flagBranch)
		if !ok || e.page < 2 || e.page >= v.walker.meta.pages || v.walker.seen[e.page] {
			continue
		}
		if err := v.old.read(head, e.page); err == nil && number.Uint64(head) == e.page {
			v.fail(v.walker.bucket(bucket, e.page))
		}
	}
}

func (v *salvager) fail(err error) { v.err = errors.Join(v.err, err) }

// maxElements is the maximum number of elements of a page without overflow
// pages.
const maxElements = (pageSize - pageHeader) / elementSize

// maxValue is the maximum length of a record.
const maxValue = 64 << 20

// looseLeaf reads everything on a page that looks like a leaf element of one of
// the buckets. It ignores the page header.
func (v *salvager) looseLeaf(id uint64, names []string, tree bool) error {
	b := make([]byte, pageSize)
	if err := v.old.read(b, id); err != nil {
		return err
	}
	size := v.old.count * pageSize
	for i := range maxElements {
		at := uint64(pageHeader + i*elementSize)
		h := b[at:]
		pos, ksize, vsize := uint64(number.Uint32(h[4:])), uint64(number.Uint32(h[8:])), uint64(number.Uint32(h[12:]))
		if pos < elementSize || vsize < seal.Overhead || vsize > maxValue || ksize > finishedKeySize {
			continue
		}
		from := id*pageSize + at + pos
		if from+ksize+vsize > size {
			continue
		}
		for _, bucket := range names {
			if keySize(bucket) != int(ksize) {
				continue
			}
			data := make([]byte, ksize+vsize)
			if _, err := v.old.f.ReadAt(data, int64(from)); err != nil {
				return err
			}
			v.record(bucket, data[:ksize:ksize], data[ksize:], tree)
		}
	}
	return nil
}

func keySize(bucket string) int {
	switch bucket {
	case bucketJobs, bucketDone:
		return record.JobKeySize
	case bucketFinished:
		return finishedKeySize
	case bucketMeta:
		return -1
	}
	return 16
}

// record keeps a record if it authenticates. A record found outside the tree
// may have been deleted.
func (v *salvager) record(bucket string, key, sealed []byte, tree bool) {
	if isFiller(key) || v.err != nil {
		return
	}
	if bucket == bucketMeta && bytes.Equal(key, keyFormat) {
		// What this program is too old for can look damaged.
		_, err := v.store.checkFormat(sealed)
		if _, damaged := errors.AsType[*damage](err); !damaged {
			v.err = err
		}
		return
	}
	if !tree && bucket != bucketJobs && v.tx.Bucket([]byte(bucket)).Get(key) != nil {
		return
	}
	plain, err := v.store.sealer.Open(sealed, bucket, key)
	if err != nil {
		if bucket != bucketMeta && tree {
			v.refused++
		}
		return
	}
	switch bucket {
	case bucketMeta:
		return // written by create, or computed again
	case bucketFinished:
		if n := len(key); n == finishedKeySize {
			id := finishedID(key)
			if old, ok := v.finished[id]; !ok || tree && !old.tree {
				v.finished[id] = finish{finishedTime(key), tree}
			}
		}
		return
	case bucketJobs:
		if !tree && !v.newer(key, plain) {
			return
		}
	case bucketMessages, bucketBodies, bucketDone:
		if !tree && !v.known(uuid.UUID(key[:16])) {
			return
		}
	}
	v.put(bucket, key, sealed)
}

// newer reports whether to keep a job found outside the tree: its message
// exists, and the record is newer than the known one. If the tree does not
// reach all messages, it also keeps a waiting job that has not expired.
func (v *salvager) newer(key, plain []byte) bool {
	j, _, err := record.DecodeJob(record.ParseJobKey(key), plain)
	if err != nil {
		return false
	}
	if known := v.tx.Bucket([]byte(bucketJobs)).Get(key); known != nil {
		k, _, err := v.store.sealer.OpenJob(bucketJobs, record.ParseJobKey(key), known)
		return err == nil && j.Updated.After(k.Updated)
	}
	return v.tx.Bucket([]byte(bucketMessages)).Get(key[:16]) != nil || v.partial && j.Status.Waits() && j.Expires.After(time.Now())
}

// known reports whether another record belongs to the message. A record outside
// the tree counts only if the tree does not reach all messages, because it may
// belong to a message that has been forgotten.
func (v *salvager) known(id uuid.UUID) bool {
	if f, ok := v.finished[id]; ok && (f.tree || v.partial) {
		return true
	}
	for _, bucket := range []string{bucketMessages, bucketBodies, bucketJobs, bucketDone} {
		if k, _ := v.tx.Bucket([]byte(bucket)).Cursor().Seek(id[:]); bytes.HasPrefix(k, id[:]) {
			return true
		}
	}
	return false
}

func (v *salvager) put(bucket string, key, sealed []byte) {
	b := v.tx.Bucket([]byte(bucket))
	if b.Get(key) == nil {
		v.kept++
	}
	// bbolt needs the value until the commit.
	v.fail(b.Put(key, bytes.Clone(sealed)))
	v.pending += len(key) + len(sealed)
	if v.err != nil || v.pending < maxBatchBytes {
		return
	}
	v.pending = 0
	if err := v.tx.Commit(); err != nil {
		v.fail(err)
		return
	}
	tx, err := v.db.Begin(true)
	v.fail(err)
	if err == nil {
		v.tx = tx
	}
}

// report logs a lost record.
func (v *salvager) report(what string, id uuid.UUID) {
	v.lost++
	v.store.log.Error("a record of the queue is lost", zap.String("lost", what), zap.String("id", id.String()))
}

// resultsName describes the results that the record of a message holds.
func resultsName(id uuid.UUID) string {
	if queue.IsBatch(id) {
		return "the results of messages that came in within a second"
	}
	return "the results of a message"
}

// group is the records of one message.
type group struct {
	id     uuid.UUID
	header []byte // sealed
	body   bool
	jobs   []queue.Job
	done   []queue.Job
	size   int64
}

// compare completes the records of each message, and reports what is missing.
func (v *salvager) compare() error {
	type ended struct {
		id    uuid.UUID
		time  time.Time
		size  int64
		jobs  int
		dead  int
		keyed bool
	}
	var fixes []func(b *batch) error
	var ends []ended
	present := map[uuid.UUID]bool{}
	err := v.groups(func(g *group) {
		fix, header := v.complete(g)
		fixes = append(fixes, fix...)
		if header == nil {
			return
		}
		if f, ok := v.finished[g.id]; ok && f.tree {
			present[g.id] = true
		}
		e := ended{id: g.id, time: time.Now(), size: header.Size, jobs: header.Jobs, keyed: header.Key != (seal.Hash{})}
		for _, j := range g.jobs {
			if j.Status.Waits() {
				return
			}
			e.dead++
		}
		if f, ok := v.finished[g.id]; ok {
			e.time = f.time
		}
		ends = append(ends, e)
	})
	if err != nil {
		return err
	}
	for id, f := range v.finished {
		if f.tree && !present[id] {
			v.report(resultsName(id), id)
		}
	}
	for _, e := range ends {
		fixes = append(fixes, func(b *batch) error { return b.finish(e.id, e.size, e.jobs, e.dead, e.keyed, e.time) })
	}
	return v.apply(fixes)
}

// apply makes changes of the store, some at a time.
func (v *salvager) apply(fixes []func(b *batch) error) error {
	var kept int64
	for part := range slices.Chunk(fixes, 10_000) {
		err := v.db.Update(func(tx *bbolt.Tx) error {
			b := newBatch(v.store, tx, newWorkspace(v.store.sealer.Sealer))
			for _, f := range part {
				if err := f(b); err != nil {
					return err
				}
			}
			kept += b.kept
			return b.put(bucketMeta, keyKept, binary.AppendVarint(nil, kept))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// groups calls f with the records of each message.
func (v *salvager) groups(f func(*group)) error {
	return v.db.View(func(tx *bbolt.Tx) error {
		names := []string{bucketMessages, bucketBodies, bucketJobs, bucketDone}
		cursors := make([]*bbolt.Cursor, len(names))
		keys, values := make([][]byte, len(names)), make([][]byte, len(names))
		for i, name := range names {
			cursors[i] = tx.Bucket([]byte(name)).Cursor()
			cursors[i].First() // the filler
			keys[i], values[i] = cursors[i].Next()
		}
		for {
			var first []byte
			for _, k := range keys {
				if k != nil && (first == nil || bytes.Compare(k[:16], first) < 0) {
					first = k[:16]
				}
			}
			if first == nil {
				return nil
			}
			g := &group{id: uuid.UUID(first)}
			for i, name := range names {
				for bytes.HasPrefix(keys[i], g.id[:]) {
					g.add(v.store, name, keys[i], values[i])
					keys[i], values[i] = cursors[i].Next()
				}
			}
			f(g)
		}
	})
}

func (g *group) add(s *writer, bucket string, key, sealed []byte) {
	switch bucket {
	case bucketMessages:
		g.header = sealed
	case bucketBodies:
		g.body = true
	default:
		plain, err := s.sealer.Open(sealed, bucket, key)
		if err != nil {
			return // already authenticated
		}
		j, size, err := record.DecodeJob(record.ParseJobKey(key), plain)
		switch {
		case err != nil:
		case bucket == bucketJobs:
			g.jobs, g.size = append(g.jobs, *j), size
		default:
			g.done = append(g.done, *j)
		}
	}
}

// complete returns the changes that make the records of a message consistent,
// and its header, or a nil header if the message is lost. It leaves the
// remaining jobs in g.jobs.
func (v *salvager) complete(g *group) (fixes []func(b *batch) error, header *record.Message) {
	fix := func(f func(b *batch) error) { fixes = append(fixes, f) }
	// A job found outside the tree may have ended since.
	g.jobs = slices.DeleteFunc(g.jobs, func(j queue.Job) bool {
		ended := slices.ContainsFunc(g.done, func(d queue.Job) bool { return d.JobID == j.JobID })
		if ended {
			fix(func(b *batch) error { return b.delete(bucketJobs, record.JobKey(j.JobID)) })
		}
		return ended
	})
	if g.header != nil {
		if m, err := v.store.sealer.OpenHead(g.id, g.header); err == nil {
			header = m
		}
	}
	if header == nil {
		v.report(resultsName(g.id), g.id)
		if len(g.jobs) == 0 || !g.body {
			for _, j := range g.jobs {
				v.report(fmt.Sprintf("delivery %d of a message", j.Index+1), g.id)
			}
			g.jobs = nil
			fix(func(b *batch) error {
				return errors.Join(b.delete(bucketBodies, g.id[:]), b.deletePrefix(bucketJobs, g.id[:]), b.deletePrefix(bucketDone, g.id[:]))
			})
			return fixes, nil
		}
		header = &record.Message{Created: timeOf(g.id), Size: g.size, Files: v.store.fileSizes(g.id)}
		for _, j := range slices.Concat(g.jobs, g.done) {
			header.Jobs = max(header.Jobs, j.Index+1)
		}
		fix(func(b *batch) error { return b.put(bucketMessages, g.id[:], header.Encode()) })
	}
	if header.Key != (seal.Hash{}) {
		fix(func(b *batch) error {
			return b.put(bucketKeys, header.Key[:], append(append([]byte{}, g.id[:]...), header.Request...))
		})
	}
	if !g.body && len(g.jobs) > 0 {
		v.report("the text of a message", g.id)
		g.jobs = nil // each of them is lost
	}
	fixes = append(fixes, v.lose(g, header)...)
	if len(g.jobs) == 0 && g.body {
		fix(func(b *batch) error { return b.delete(bucketBodies, g.id[:]) })
	}
	return fixes, header
}

// lose returns changes that record jobs without records as lost.
func (v *salvager) lose(g *group, header *record.Message) (fixes []func(b *batch) error) {
	there := make([]bool, header.Jobs)
	for _, j := range slices.Concat(header.Done, g.done, g.jobs) {
		if j.Index < len(there) {
			there[j.Index] = true
		}
	}
	for i := range there {
		if there[i] {
			continue
		}
		v.report(fmt.Sprintf("delivery %d of a message", i+1), g.id)
		j := &queue.Job{
			JobID: queue.JobID{Message: g.id, Index: i}, Status: queue.Lost, Updated: time.Now(),
			Reason: "its record in the queue's store was damaged",
		}
		fixes = append(fixes, func(b *batch) error {
			return errors.Join(b.delete(bucketJobs, b.jobKey(j.JobID)), b.putJob(bucketDone, j, 0))
		})
	}
	return fixes
}

// fileSizes returns the sizes of the attachments of a message, computed from
// their files.
func (dir *folder) fileSizes(id uuid.UUID) (sizes []int64) {
	for i := 0; ; i++ {
		info, err := os.Stat(filepath.Clean(dir.filePath(id, i)))
		if err != nil {
			return sizes
		}
		const sealed = seal.ChunkSize + seal.Overhead
		chunks := (info.Size() + sealed - 1) / sealed
		sizes = append(sizes, info.Size()-chunks*seal.Overhead)
	}
}
