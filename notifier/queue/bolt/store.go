// Package bolt keeps a queue in a folder that one process uses at a time: a
// bbolt database, and the attachments as files.
//
// One goroutine writes. It commits all waiting changes in one transaction, so
// that they share the cost of a commit (two fsyncs). The outcomes of deliveries
// wait some milliseconds for other changes. Waiting jobs are indexed in memory,
// without their content; recent messages, up to 8 MiB, are also kept in memory
// until they are delivered.
//
// The folder has these files, with mode 0600:
//
//	queue.db      the database
//	state         how many deliveries wait, for the case that queue.db is lost
//	key           the key, unless the configuration has a secret
//	lock          locked by the process that uses the folder
//	ring          after the secret has changed: a copy of a record of queue.db
//	files/        attachments
//	queue.db.damaged-*  databases that were damaged and have been replaced
//
// Every value of the database is sealed (package seal), except the number of its
// form. Its keys are IDs, times and keyed hashes.
package bolt

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/internal/record"
)

// Options configure a store.
type Options struct {
	// Path is the folder. It is created with mode 0700 if it does not exist.
	Path string

	// Secret is the text that the encryption key is derived from, of 16 or more
	// characters. Default: the content of the file "key" in the folder, which is
	// created with the store.
	Secret string

	// OldSecrets open what was sealed under them before there was Secret.
	OldSecrets []string

	// Logger gets reports of damage, one for each record that is lost. Default:
	// none.
	Logger *zap.Logger

	// NoSync means that stored data survives the end of the process, but not a power cut. It makes
	// tests faster.
	NoSync bool

	commit func(*bbolt.Tx) error // for a test of failing disks; default: its method Commit
	writes queue.Format          // for tests: the format of what this program writes
}

// The buckets of the database.
const (
	bucketMeta     = "meta"         // keyCheck, keyKept, keyFormat
	bucketMessages = record.Heads   // ID → record.Message
	bucketBodies   = record.Bodies  // ID → Body, while a job waits or is dead
	bucketJobs     = record.Jobs    // JobKey → job that waits or is dead
	bucketDone     = "done"         // JobKey → job that has ended
	bucketKeys     = "keys"         // hash of the idempotency key → ID and hash of the request
	bucketFinished = "finished"     // kind, time and ID → size of a message that has no waiting job
	bucketHealth   = "health"       // hash of the destination → its state
	bucketRecords  = record.Records // name → when it is due, and a record of queue.Update
)

var buckets = []string{
	bucketMeta, bucketMessages, bucketBodies, bucketJobs, bucketDone, bucketKeys, bucketFinished, bucketHealth,
	bucketRecords,
}

var (
	keyCheck = []byte("check") // the ring of the sealer, which only the right secret opens
	keyKept  = []byte("kept")  // the total size of the finished messages
)

// Store is a [queue.Store] in a folder.
type Store struct {
	*writer
	recordStore
	unlock func() error // of the folder
	once   sync.Once

	secretSince atomic.Pointer[time.Time] // when the secret was changed; the zero time if it was set at the start
	resealed    atomic.Pointer[time.Time] // the value of secretSince with which all records of the database were sealed again
}

// folder is the folder of a store.
type folder struct {
	path   string
	noSync bool
	sealer *record.Sealer
	log    *zap.Logger
}

// database is the open database with its index.
type database struct {
	*folder
	rollback *rollbackGuard
	writes   queue.Format  // of what this program writes
	broken   chan struct{} // signals that a reader has found a damaged page
	stop     chan struct{}

	mu sync.RWMutex
	db *bbolt.DB // nil while it cannot be opened

	index  *index
	kept   atomic.Int64 // bytes of the finished messages
	lastID uuid.UUID    // no message has a higher ID; for the writer
}

// writer changes the database, by one goroutine.
type writer struct {
	*database
	commitTx func(*bbolt.Tx) error

	changes changes
	results sync.Pool // of chan error, for changes
	recent  recent
	backups backups
	changed chan struct{} // of Changed
	stopped chan struct{}

	// Used by the goroutine only.
	lastError    error // of the last failed commit
	reserve      reserve
	remembered   state
	rememberedAt time.Time        // zero if nothing has been written since the store was opened
	rememberLate <-chan time.Time // when to write the state, though nothing changes
	workspace    *workspace
}

var (
	_ queue.Store    = (*Store)(nil)
	_ queue.Resealer = (*Store)(nil)
)

// Open opens the store in a folder, or creates it. It returns a [*LockedError]
// if another process uses the folder, and an error that tells what to do if the
// key is missing or wrong. Open renames a damaged database and replaces it with
// one that has its readable records.
func Open(o Options) (*Store, error) {
	dir := &folder{path: o.Path, noSync: o.NoSync, log: o.Logger}
	if dir.log == nil {
		dir.log = zap.NewNop()
	}
	d := &database{
		folder: dir, rollback: newRollbackGuard(dir.dbPath()), writes: cmp.Or(o.writes, written), index: newIndex(),
		broken: make(chan struct{}, 1), stop: make(chan struct{}),
	}
	w := &writer{
		database: d, commitTx: o.commit, changes: changes{added: make(chan struct{}, 1)},
		backups: backups{dir: dir}, changed: make(chan struct{}, 1), stopped: make(chan struct{}),
	}
	if w.commitTx == nil {
		w.commitTx = (*bbolt.Tx).Commit
	}
	s := &Store{writer: w, recordStore: recordStore{w}}
	s.secretSince.Store(new(time.Time))
	if err := os.MkdirAll(filepath.Join(s.path, "files"), 0o700); err != nil {
		return nil, fmt.Errorf("creating the folder of the queue: %w", err)
	}
	unlock, err := lockFolder(s.path)
	if err != nil {
		return nil, err
	}
	s.unlock = unlock
	if err := s.open(o.Secret, o.OldSecrets); err != nil {
		_ = unlock()
		return nil, fmt.Errorf("opening the queue in %s: %w", s.path, err)
	}
	go s.write()
	return s, nil
}

func (dir *folder) dbPath() string { return filepath.Join(dir.path, "queue.db") }

func (dir *folder) filePath(id uuid.UUID, i int) string {
	return filepath.Join(dir.path, "files", fmt.Sprintf("%s.%d", id, i))
}

func (s *Store) open(secret string, older []string) error {
	_, err := os.Stat(s.dbPath())
	exists := err == nil
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	remembered, known := s.readState()
	s.remembered = remembered
	if !exists {
		_, err := os.Stat(s.KeyFile())
		if known || err == nil {
			s.logMissing(known)
		}
		s.remembered = state{}
	}
	if secret == "" {
		if secret, err = readKey(s.KeyFile(), !exists); err != nil {
			return err
		}
	}
	sealer, err := seal.New(secret, older...)
	if err != nil {
		return err
	}
	s.sealer = &record.Sealer{Sealer: sealer, Log: s.log}
	s.readRing()
	s.workspace = newWorkspace(sealer)
	if !exists {
		if err := s.create(nil); err != nil {
			return err
		}
		if err := s.replace(); err != nil {
			return err
		}
	}
	if err := s.load(); err != nil {
		return err
	}
	s.removeOrphans()
	return nil
}

// load opens the database and reads the index.
func (w *writer) load() error {
	o, err := w.openOrSalvage()
	if err != nil {
		return err
	}
	w.install(o)
	return nil
}

// opened is a database that has been opened and read.
type opened struct {
	db       *bbolt.DB
	index    *index
	kept     int64 // bytes of the finished messages
	salvaged bool  // the database was damaged and has been replaced
}

// openOrSalvage opens the database. If it is damaged, it is replaced first.
func (w *writer) openOrSalvage() (*opened, error) {
	o, err := w.openDB()
	if damage, ok := errors.AsType[*damage](err); ok {
		if err := w.salvage(damage); err != nil {
			return nil, err
		}
		if o, err = w.openDB(); err == nil {
			o.salvaged = true
		}
	}
	return o, err
}

// install begins to use a database.
func (w *writer) install(o *opened) {
	waiting := w.index.countWaiting()
	found := o.index.queued + o.index.sending
	w.mu.Lock()
	w.db = o.db
	w.kept.Store(o.kept)
	w.mu.Unlock()
	w.index.replace(o.index)
	if o.salvaged {
		w.logDifference(max(waiting, w.remembered.waiting), found)
		w.remembered, w.reserve.written = state{}, 0
	}
	w.reserve.reset(o.db, max(w.remembered.written, w.reserve.written))
}

// openDB opens the database if bbolt can read it. The error is a [*damage] if a
// page or a job is damaged.
func (d *database) openDB() (*opened, error) {
	if err := checkFile(d.dbPath()); err != nil {
		return nil, err
	}
	o := &opened{index: newIndex()}
	err := guard(func() (err error) {
		options := d.boltOptions()
		options.Logger = d.rollback
		options.InitialMmapSize = initialMapping(runtime.GOOS)
		if o.db, err = bbolt.Open(d.dbPath(), 0o600, options); err != nil {
			return err
		}
		o.db.AllocSize = 1 << 20 // by which bbolt extends the file beyond the reserve
		var format queue.Format
		err = o.db.View(func(tx *bbolt.Tx) (err error) {
			if format, err = d.readFormat(tx); err != nil {
				return err
			}
			if err := d.readIndex(tx, o.index); err != nil {
				return err
			}
			if last, _ := tx.Bucket([]byte(bucketMessages)).Cursor().Last(); len(last) == len(d.lastID) && bytes.Compare(last, d.lastID[:]) > 0 {
				d.lastID = uuid.UUID(last)
			}
			if err := d.readRecords(tx, o.index); err != nil {
				return err
			}
			o.kept, err = d.readKept(tx)
			return err
		})
		if err == nil && o.index.ring != nil {
			err = d.putRing(o.db, o.index.ring)
		}
		if err != nil || format.Join(d.writes) == format {
			return err
		}
		return o.db.Update(func(tx *bbolt.Tx) error { return d.putFormat(tx, format) })
	})
	if err == nil {
		return o, nil
	}
	if o.db != nil {
		o.db.Close()
	}
	if fault, ok := errors.AsType[*faultError](err); ok {
		err = &damage{what: fault.Error()}
	}
	return nil, err
}

// boltOptions returns the options of bbolt. The list of free pages is not
// stored, because it grows with the free space and would be written with every
// commit. checkFile reads all pages anyway.
func (d *database) boltOptions() *bbolt.Options {
	return &bbolt.Options{
		NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, PageSize: pageSize,
		Timeout: time.Second, NoSync: d.noSync, NoGrowSync: d.noSync,
	}
}

// readIndex reads the jobs that wait or are dead.
func (d *database) readIndex(tx *bbolt.Tx, x *index) error {
	var err error
	if x.ring, err = d.joinRing(tx); err != nil {
		return err
	}
	files, err := d.storedFiles()
	if err != nil {
		return err
	}
	var jobs []newJob // of one message
	var l large
	err = tx.Bucket([]byte(bucketJobs)).ForEach(func(k, v []byte) error {
		if isFiller(k) {
			return nil
		}
		if len(k) != record.JobKeySize {
			return &damage{what: "a job"}
		}
		j, size, err := d.sealer.OpenJob(bucketJobs, record.ParseJobKey(k), v)
		if err != nil {
			return &damage{what: "a job"}
		}
		if len(jobs) > 0 && jobs[0].message != j.Message {
			x.add(l, jobs...)
			jobs = jobs[:0]
		}
		to := place{d.sealer.DestinationHash(j.Destination), d.sealer.DestinationHash(j.Host), j.Client}
		jobs = append(jobs, newJob{jobOf(j, timeOf(j.Message), size, false), to, j.Status})
		l = large{files[j.Message], int64(j.Text)}
		return nil
	})
	if err != nil {
		return err
	}
	x.add(l, jobs...)
	return checkKeys(tx, x)
}

// checkKeys returns a [*damage] if a damaged key has made a record unreachable.
// It compares sums of hashes of the message IDs in each bucket.
func checkKeys(tx *bbolt.Tx, x *index) error {
	seed := maphash.MakeSeed()
	sum := func(bucket string, size, at int) (sum uint64) {
		// The function returns no error.
		_ = tx.Bucket([]byte(bucket)).ForEach(func(k, _ []byte) error {
			if len(k) == size {
				sum += maphash.Bytes(seed, k[at:at+16])
			}
			return nil
		})
		return sum
	}
	var waiting, all uint64
	var last uuid.UUID
	for j := range x.jobs.all() {
		if j.message == last {
			continue
		}
		last = j.message
		h := maphash.Bytes(seed, last[:])
		all += h
		if x.counts(j).waiting > 0 {
			waiting += h
		}
	}
	if sum(bucketMessages, 16, 0) != sum(bucketFinished, finishedKeySize, finishedKeySize-16)+waiting || sum(bucketBodies, 16, 0) != all {
		return &damage{what: "the key of a record"}
	}
	return nil
}

// timeOf returns the time at which the ID of a message was made.
func timeOf(id uuid.UUID) time.Time { return time.Unix(id.Time().UnixTime()) }

// look calls f with the index, which is locked meanwhile.
func (d *database) look(f func(x *index)) error {
	if d.closed() {
		return queue.ErrClosed
	}
	d.index.mu.Lock()
	defer d.index.mu.Unlock()
	f(d.index)
	return nil
}

// current returns the database, or nil while it cannot be opened.
func (d *database) current() *bbolt.DB {
	d.mu.RLock()
	defer d.mu.RUnlock()
	return d.db
}

func (d *database) closed() bool {
	select {
	case <-d.stop:
		return true
	default:
		return false
	}
}

// reopen closes and reopens the database after a fault.
func (w *writer) reopen() error {
	w.closeDatabase()
	return w.load()
}

func (w *writer) closeDatabase() {
	w.mu.Lock()
	db := w.db
	w.db = nil
	w.mu.Unlock()
	w.backups.end(errBackupOpens) // bbolt waits for them
	if db != nil {
		if err := db.Close(); err != nil {
			w.log.Warn("closing the queue's damaged store", zap.Error(err))
		}
	}
}

// Close implements [queue.Store].
func (s *Store) Close() (err error) {
	s.once.Do(func() {
		close(s.stop)
		<-s.stopped
		s.mu.Lock()
		db := s.db
		s.db = nil
		s.mu.Unlock()
		s.backups.end(queue.ErrClosed)
		if db != nil {
			s.remember(true)
			err = db.Close()
		}
		err = errors.Join(err, s.unlock())
	})
	return err
}

// Changed implements [queue.Store].
func (s *Store) Changed() <-chan struct{} { return s.changed }

// signal makes a channel that has room for a value receive one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Now implements [queue.Store]: the only process that uses the store has a clock.
func (s *Store) Now() time.Time { return time.Time{} }

// Renew implements [queue.Store]: claims last as long as the process.
func (s *Store) Renew(context.Context, time.Duration) error { return nil }
