package bolt

import (
	"bytes"
	"cmp"

	"github.com/google/btree"

	"github.com/caddy-notify/caddy-notify/internal/seal"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// records is the part of the index about the records of updates: when each is due, and its group.
// It holds about 100 bytes for each, and no content. It is ordered, so that a search for a few of
// very many is fast.
type records struct {
	places  map[seal.Hash]recordPlace
	due     *btree.BTreeG[dueRecord]
	groups  map[seal.Hash]*recordGroup
	numbers map[uint32]*recordGroup // the groups by their numbers
	last    uint32                  // the number that was given last
	bytes   int64                   // size of all

	dueNodes  *btree.FreeListG[dueRecord] // of due
	nameNodes *btree.FreeListG[seal.Hash] // of all groups
}

// recordPlace is the position of a record in the order of records. It has no pointer, so that the
// garbage collector does not visit each of very many records.
type recordPlace struct {
	due   int64
	group uint32 // the number of its group; 0 for none
}

type dueRecord struct {
	due  int64
	name seal.Hash
}

// recordGroup has the names of the records of a group.
type recordGroup struct {
	hash   seal.Hash
	number uint32
	names  *btree.BTreeG[seal.Hash]
}

// recordDegree is half of the number of records in a node of a tree.
const recordDegree = 32

func compareHashes(a, b seal.Hash) int { return bytes.Compare(a[:], b[:]) }

func newRecords() *records {
	r := &records{
		places: map[seal.Hash]recordPlace{}, groups: map[seal.Hash]*recordGroup{}, numbers: map[uint32]*recordGroup{},
		dueNodes: btree.NewFreeListG[dueRecord](btree.DefaultFreeListSize), nameNodes: btree.NewFreeListG[seal.Hash](btree.DefaultFreeListSize),
	}
	r.due = btree.NewWithFreeListG(recordDegree, func(a, b dueRecord) bool {
		return cmp.Or(cmp.Compare(a.due, b.due), compareHashes(a.name, b.name)) < 0
	}, r.dueNodes)
	return r
}

// put adds a record, or replaces it. group is the zero value for none.
func (r *records) put(name seal.Hash, due int64, group seal.Hash) {
	r.remove(name)
	p := recordPlace{due: due}
	if group != (seal.Hash{}) {
		g := r.group(group)
		g.names.ReplaceOrInsert(name)
		p.group = g.number
	}
	r.places[name] = p
	r.due.ReplaceOrInsert(dueRecord{due, name})
}

// group returns a group, and makes it if there is none.
func (r *records) group(hash seal.Hash) *recordGroup {
	if g := r.groups[hash]; g != nil {
		return g
	}
	r.last++
	for r.last == 0 || r.numbers[r.last] != nil { // each number has been given once
		r.last++
	}
	g := &recordGroup{hash, r.last, btree.NewWithFreeListG(recordDegree, func(a, b seal.Hash) bool { return compareHashes(a, b) < 0 },
		r.nameNodes)}
	r.groups[hash], r.numbers[g.number] = g, g
	return g
}

func (r *records) remove(name seal.Hash) {
	p, ok := r.places[name]
	if !ok {
		return
	}
	delete(r.places, name)
	r.due.Delete(dueRecord{p.due, name})
	if p.group == 0 {
		return
	}
	g := r.numbers[p.group]
	if g.names.Delete(name); g.names.Len() == 0 {
		delete(r.groups, g.hash)
		delete(r.numbers, g.number)
	}
}

// dueAfter returns the places of at most n records that are due, after one.
func (r *records) dueAfter(now int64, after dueRecord, n int) (due []dueRecord) {
	r.due.AscendGreaterOrEqual(after, func(d dueRecord) bool {
		if len(due) >= n || d.due > now {
			return false
		}
		if d != after {
			due = append(due, d)
		}
		return true
	})
	return due
}

// surplus returns the names of at most n of the records beyond keep. The records that are due first
// are surplus first.
func (r *records) surplus(keep, n int) (names []queue.Hash) {
	n = min(n, len(r.places)-keep)
	r.due.Ascend(func(d dueRecord) bool {
		if len(names) >= n {
			return false
		}
		names = append(names, d.name)
		return true
	})
	return names
}

// ofGroup returns the first n names of a group after the name after.
func (r *records) ofGroup(group, after seal.Hash, n int) (names []queue.Hash) {
	g := r.groups[group]
	if g == nil {
		return nil
	}
	g.names.AscendGreaterOrEqual(after, func(name seal.Hash) bool {
		if name != after {
			names = append(names, name)
		}
		return len(names) < n
	})
	return names
}

// groupSizes returns how many records each group has.
func (r *records) groupSizes() map[queue.Hash]int {
	sizes := make(map[queue.Hash]int, len(r.groups))
	for hash, g := range r.groups {
		sizes[hash] = g.names.Len()
	}
	return sizes
}
