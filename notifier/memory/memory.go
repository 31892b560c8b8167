// Package memory bounds the memory that the requests under way in a process hold.
package memory

import "sync"

// Budget counts the memory that the requests under way in a process hold, in bytes. The zero Budget
// is ready for use.
type Budget struct {
	mu     sync.Mutex
	held   int64 // by all requests
	files  int64 // of it, by files
	client int64 // of it, by requests of clients that are not trusted
}

// Held returns how many bytes the requests under way hold.
func (m *Budget) Held() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.held
}

// SmallText is the length in bytes up to which a text is not counted in a
// [Budget], so that an alert of the usual length never lacks memory.
const SmallText = 32 << 10

// Allocation is the part of a [Budget] that one request holds. It is safe for
// use by several goroutines. A nil Allocation has no limit.
type Allocation struct {
	memory *Budget
	max    int64
	client bool
	texts  int64 // bytes taken
	files  int64
}

// Allocation returns the allocation of one request, which is empty. max is the
// maximum number of bytes that all requests may hold together. Files take at
// most half of them, because they can also go to disk. client is true for a
// request with URLs of clients, and for one whose token or signature has not been
// verified. These requests take at most half as well, so that they leave room for
// messages to keys. The caller closes the allocation.
func (m *Budget) Allocation(max int64, client bool) Allocation {
	return Allocation{memory: m, max: max, client: client}
}

// Max returns how many bytes all requests may hold together.
func (a *Allocation) Max() int64 { return a.max }

// Take adds n bytes for texts, or reports false if there is no room for them.
func (a *Allocation) Take(n int64) bool { return a.take(n, false) }

// TakeFile adds n bytes for files, or reports false if there is no room for them.
func (a *Allocation) TakeFile(n int64) bool { return a.take(n, true) }

func (a *Allocation) take(n int64, file bool) bool {
	if a == nil || a.memory == nil {
		return true
	}
	m := a.memory
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.held+n > a.max || file && m.files+n > a.max/2 || a.client && m.client+n > a.max/2 {
		return false
	}
	a.add(n, file)
	return true
}

// Free returns n bytes of texts.
func (a *Allocation) Free(n int64) { a.free(n, false) }

// FreeFile returns n bytes of files.
func (a *Allocation) FreeFile(n int64) { a.free(n, true) }

func (a *Allocation) free(n int64, file bool) {
	if a == nil || a.memory == nil {
		return
	}
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.add(-n, file)
}

// add counts n bytes. The caller holds the lock of the memory.
func (a *Allocation) add(n int64, file bool) {
	m := a.memory
	m.held += n
	if a.client {
		m.client += n
	}
	if file {
		a.files += n
		m.files += n
	} else {
		a.texts += n
	}
}

// Trust moves the allocation out of the half for clients. It is called when the token or the
// signature of a request has been verified.
func (a *Allocation) Trust() {
	if a == nil || a.memory == nil || !a.client {
		return
	}
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.memory.client -= a.texts + a.files
	a.client = false
}

// Distrust moves the allocation into the half for clients, or reports false if there is no room for
// it. It is called when a request turns out to have URLs.
func (a *Allocation) Distrust() bool {
	if a == nil || a.memory == nil || a.client {
		return true
	}
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	if a.memory.client+a.texts+a.files > a.max/2 {
		return false
	}
	a.memory.client += a.texts + a.files
	a.client = true
	return true
}

// Close frees the whole allocation.
func (a *Allocation) Close() {
	if a == nil || a.memory == nil {
		return
	}
	a.memory.mu.Lock()
	defer a.memory.mu.Unlock()
	a.add(-a.texts, false)
	a.add(-a.files, true)
}
