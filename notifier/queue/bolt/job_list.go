package bolt

import (
	"iter"
	"slices"
	"sort"

	"github.com/google/uuid"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// jobList has jobs in the order of their IDs, in chunks, so that to add or remove a job moves few
// others. IDs begin with times, so nearly all new jobs come last, and fill the chunks.
type jobList [][]*job

// jobChunk is the maximum number of jobs of a chunk.
const jobChunk = 512

// search returns where a job is, or else where it would be added.
func (l jobList) search(id queue.JobID) (chunk, i int, found bool) {
	if len(l) == 0 {
		return 0, 0, false
	}
	chunk = max(sort.Search(len(l), func(c int) bool { return l[c][0].id().Compare(id) > 0 })-1, 0)
	i, found = slices.BinarySearchFunc(l[chunk], id, func(j *job, id queue.JobID) int { return j.id().Compare(id) })
	return chunk, i, found
}

// find returns the job with an ID, or nil.
func (l jobList) find(id queue.JobID) *job {
	if c, i, found := l.search(id); found {
		return l[c][i]
	}
	return nil
}

// has reports whether the list has a job of a message.
func (l jobList) has(message uuid.UUID) bool {
	for range l.of(message) {
		return true
	}
	return false
}

// of returns the jobs of a message. The list must not change meanwhile.
func (l jobList) of(message uuid.UUID) iter.Seq[*job] {
	return func(yield func(*job) bool) {
		first, i, _ := l.search(queue.JobID{Message: message})
		for c := first; c < len(l); c, i = c+1, 0 {
			for _, j := range l[c][i:] {
				if j.message != message || !yield(j) {
					return
				}
			}
		}
	}
}

// all returns all jobs. The list must not change meanwhile.
func (l jobList) all() iter.Seq[*job] {
	return func(yield func(*job) bool) {
		for _, chunk := range l {
			for _, j := range chunk {
				if !yield(j) {
					return
				}
			}
		}
	}
}

// add adds a job, whose ID must be new.
func (l *jobList) add(j *job) {
	c, i, _ := l.search(j.id())
	switch {
	case len(*l) == 0:
		*l = jobList{newChunk()}
	case len((*l)[c]) < jobChunk:
	case i == jobChunk: // after all jobs of the chunk
		c, i = c+1, 0
		*l = slices.Insert(*l, c, newChunk())
	case c+1 < len(*l) && len((*l)[c+1]) < jobChunk: // as for IDs that come a little late
		last := (*l)[c][jobChunk-1]
		(*l)[c], (*l)[c+1] = (*l)[c][:jobChunk-1], slices.Insert((*l)[c+1], 0, last)
	default:
		half := (*l)[c][jobChunk/2:]
		*l = slices.Insert(*l, c+1, newChunk(half...))
		clear(half)
		if (*l)[c] = (*l)[c][:jobChunk/2]; i > jobChunk/2 {
			c, i = c+1, i-jobChunk/2
		}
	}
	(*l)[c] = slices.Insert((*l)[c], i, j)
}

func newChunk(jobs ...*job) []*job { return append(make([]*job, 0, jobChunk), jobs...) }

// remove removes a job of the list.
func (l *jobList) remove(j *job) {
	c, i, _ := l.search(j.id())
	(*l)[c] = slices.Delete((*l)[c], i, i+1)
	switch {
	case len((*l)[c]) == 0:
		*l = slices.Delete(*l, c, c+1)
	case c+1 < len(*l) && len((*l)[c])+len((*l)[c+1]) <= jobChunk/2:
		(*l)[c] = append((*l)[c], (*l)[c+1]...)
		*l = slices.Delete(*l, c+1, c+2)
	}
}
