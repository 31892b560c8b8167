package queue

import (
	"bytes"
	"fmt"
)

// Tx is the transaction of an [Update] or of a [Ruled] change. It reads the records that the change
// names, and collects changes. Get returns a content that was put earlier in the transaction.
type Tx struct {
	names   []Hash
	old     [][]byte    // the contents of the records; nil for one that does not exist or is damaged
	new     []newRecord // nil, or one for each name
	at      int         // the name that was used last; the next use is often of the same name, or of the one after it
	owned   []OwnedRecord
	jobs    []JobChange
	status  func([]JobID) ([]Status, error)
	release []Job
	quiet   bool
	callers bool // the caller of the queue decides: its records are stored as [Record.asCallers] returns them
	err     error
}

// newRecord is the new content of a record.
type newRecord struct {
	Record
	put bool // put or deleted; otherwise unchanged
}

// Run calls u.Decide, and returns the changes. A store calls it when nobody else can change the
// records. old has their contents in the order of u.Names, nil for one that does not exist or is
// damaged, and status is as [Tx.Status].
func (u *Update) Run(old [][]byte, status func([]JobID) ([]Status, error)) (*Tx, error) {
	tx := &Tx{names: u.Names, old: old, status: status}
	if err := u.Decide(tx); err != nil {
		return nil, err
	}
	return tx, tx.err
}

// find returns the index of a name. The transaction fails if it is unknown.
func (tx *Tx) find(name Hash) (i int, ok bool) {
	for n := range tx.names {
		if i := (tx.at + n) % len(tx.names); tx.names[i] == name {
			tx.at = i
			return i, true
		}
	}
	tx.err = fmt.Errorf("the record %x is not one of the %d that the change names", name[:], len(tx.names))
	return 0, false
}

// Get returns the content of a record: nil if there is none or it is damaged.
func (tx *Tx) Get(name Hash) []byte {
	i, ok := tx.find(name)
	if !ok {
		return nil
	}
	b := tx.old[i]
	if tx.new != nil && tx.new[i].put {
		b = tx.new[i].Data
	}
	if tx.callers {
		return callers(b)
	}
	return b
}

// Put replaces a record. An unchanged content changes nothing, and an empty one deletes the record.
func (tx *Tx) Put(name Hash, r Record) {
	if tx.callers {
		r = r.asCallers()
	}
	if i, ok := tx.find(name); ok {
		if tx.new == nil {
			tx.new = make([]newRecord, len(tx.names))
		}
		tx.new[i] = newRecord{r, true}
	}
}

// Delete deletes a record, also a damaged one.
func (tx *Tx) Delete(name Hash) { tx.Put(name, Record{}) }

// PutOwned adds a record with a name that Decide has chosen, or removes it if r has no content. The
// record cannot be changed. One of the records that the update names owns it: every transaction
// that adds or removes it must name the owner, so that no two do so at once.
func (tx *Tx) PutOwned(name Hash, r Record) {
	if tx.callers {
		r = r.asCallers()
	}
	tx.owned = append(tx.owned, OwnedRecord{name, r})
}

// DeleteOwned removes a record that was added with [Tx.PutOwned].
func (tx *Tx) DeleteOwned(name Hash) { tx.PutOwned(name, Record{}) }

// Status returns the statuses of jobs, 0 for an unknown one. They do not change until the
// transaction ends, except that another handle can claim a Sending job again. Decide returns the error
// of Status, and can be called again after it.
func (tx *Tx) Status(ids ...JobID) ([]Status, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return tx.status(ids)
}

// StatusOf returns the status of one job, as Status does.
func (tx *Tx) StatusOf(id JobID) (Status, error) {
	statuses, err := tx.status([]JobID{id})
	if err != nil {
		return 0, err
	}
	return statuses[0], nil
}

// Change changes a job whose status was asked for and is Queued, Held or Dead. apply sets the new
// status: Queued, Held, Dead, or a final one.
func (tx *Tx) Change(id JobID, apply func(*Job)) {
	tx.jobs = append(tx.jobs, JobChange{id, apply})
}

// Release lets jobs that rules hold be sent, in this order. They have their ID, Incident,
// Destination, NewState and Note. Jobs of an incident before its newest state become Superseded.
// With an entry, the jobs have the incident and the destination of one of its jobs, which replaces
// them; otherwise they are some of [Ruled.Held].
func (tx *Tx) Release(jobs ...Job) { tx.release = append(tx.release, jobs...) }

// Quiet keeps the message that [Options.Dead] has returned from being accepted. It has no effect
// outside of [Options.Ended].
func (tx *Tx) Quiet() { tx.quiet = true }

// Changed returns the new content of the record with the i-th name, which is empty to delete it,
// and reports whether the record changes.
func (tx *Tx) Changed(i int) (r Record, ok bool) {
	if tx.new == nil || !tx.new[i].put || len(tx.new[i].Data) > 0 && bytes.Equal(tx.new[i].Data, tx.old[i]) {
		return r, false
	}
	return tx.new[i].Record, true
}

// Owned returns the owned records that are added and, without content, removed.
func (tx *Tx) Owned() []OwnedRecord { return tx.owned }

// Jobs returns the changes of jobs.
func (tx *Tx) Jobs() []JobChange { return tx.jobs }
