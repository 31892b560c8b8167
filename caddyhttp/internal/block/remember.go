package block

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"sync"
)

// Positions would make the JSON of a Caddyfile depend on its name and on every comment in it, and
// they would be wrong after a change by the admin API. So the adapter keeps them here, by the
// block in JSON, and a module that is provisioned in the same process looks up its own block. One
// that has changed since has no positions; its errors name the setting alone.
//
// The package has the memory because Caddy gives the adapter and the modules nothing in common: the
// adapter makes a module, writes it as JSON and drops it. It is bounded, as most of what is
// adapted is never loaded: `caddy run --watch` adapts every second.

// fingerprint identifies a block in JSON.
type fingerprint [sha256.Size]byte

func fingerprintOf(id string, module []byte) (f fingerprint) {
	hash := sha256.New()
	fmt.Fprintf(hash, "%s\n%s", id, module)
	hash.Sum(f[:0])
	return f
}

// maxRemembered is how many positions are remembered, besides those of the last block. It is
// enough for 30,000 keys with two URLs each.
const maxRemembered = 100_000

// memory has the positions of blocks that were adapted and not loaded yet.
type memory struct {
	mu     sync.Mutex
	blocks []*Info // the last one adapted is at the end
	size   int     // the positions of all
}

var adapted memory

// Remember keeps the positions of a block, which is module in JSON, until [Forget]. id is the ID of
// the module: those of two kinds may have the same JSON.
func Remember(id string, module []byte, c *Info) {
	c.of = fingerprintOf(id, module)
	adapted.mu.Lock()
	defer adapted.mu.Unlock()
	adapted.remove(c.of)
	adapted.blocks, adapted.size = append(adapted.blocks, c), adapted.size+c.size()
	for adapted.size > maxRemembered && len(adapted.blocks) > 1 {
		adapted.remove(adapted.blocks[0].of)
	}
}

// Recall returns the positions of a module in JSON, or nil if none are known. Other modules may
// have the same.
func Recall(id string, module []byte) *Info {
	adapted.mu.Lock()
	defer adapted.mu.Unlock()
	if len(adapted.blocks) == 0 {
		return nil
	}
	if i := adapted.index(fingerprintOf(id, module)); i >= 0 {
		return adapted.blocks[i]
	}
	return nil
}

// Forget drops the positions of blocks that were loaded. The Caddyfile may change from now on
// without being adapted in this process.
func Forget(blocks ...*Info) {
	adapted.mu.Lock()
	defer adapted.mu.Unlock()
	for _, c := range blocks {
		if c != nil {
			adapted.remove(c.of)
		}
	}
}

func (m *memory) index(of fingerprint) int {
	return slices.IndexFunc(m.blocks, func(c *Info) bool { return c.of == of })
}

func (m *memory) remove(of fingerprint) {
	if i := m.index(of); i >= 0 {
		m.size -= m.blocks[i].size()
		m.blocks = slices.Delete(m.blocks, i, i+1)
	}
}

// size returns how many positions c has.
func (c *Info) size() int {
	n := 1 + len(c.lines)
	for _, keys := range c.keys {
		for _, lines := range keys {
			n += len(lines)
		}
	}
	return n
}
