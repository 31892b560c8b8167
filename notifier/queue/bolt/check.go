package bolt

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"os"
)

// The format of bbolt's file, version 2. Numbers have the byte order of the
// machine. Pages 0 and 1 are meta pages, which are written in turn: the one
// with the higher transaction number is the current one.
const (
	pageSize   = 4096
	pageHeader = 16 // id uint64, flags uint16, count uint16, overflow uint32

	flagBranch = 0x01
	flagLeaf   = 0x02

	// elementSize is the size of an element of either kind. Branch: pos uint32, ksize
	// uint32, page uint64. Leaf: flags uint32, pos uint32, ksize uint32, vsize
	// uint32. pos counts from the beginning of the element.
	elementSize = 16

	flagBucket   = 0x01 // of a leaf element whose value is a bucket
	bucketHeader = 16   // of that value: page uint64, sequence uint64

	metaMagic   = 0xED0CDAED
	metaVersion = 2
	metaSize    = 56 // magic, version, page size, flags uint32; page, sequence, freelist, pages, transaction uint64; then a checksum
	noFreelist  = 1<<64 - 1

	maxDepth = 64
)

// number is the byte order of the file.
var number = binary.NativeEndian

// damage is the error for a file that bbolt cannot read or that has a record
// that does not authenticate.
type damage struct{ what string }

func (d *damage) Error() string { return d.what + " is damaged" }

func damagef(format string, args ...any) error { return &damage{fmt.Sprintf(format, args...)} }

// pages reads a database page by page.
type pages struct {
	f     *os.File
	count uint64 // whole pages of the file
}

func openPages(path string) (*pages, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	info, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, err
	}
	return &pages{f, uint64(info.Size() / pageSize)}, nil
}

// read fills b, whose length is a number of pages, starting at page id.
func (p *pages) read(b []byte, id uint64) error {
	if n := uint64(len(b) / pageSize); id >= p.count || n > p.count-id {
		return damagef("page %d, which is beyond the end of the file,", id)
	}
	if _, err := p.f.ReadAt(b, int64(id*pageSize)); err != nil {
		if errors.Is(err, io.EOF) {
			return damagef("page %d, which is beyond the end of the file,", id)
		}
		return err
	}
	return nil
}

// meta is a meta page.
type meta struct{ root, pages, tx uint64 }

func (p *pages) meta(id uint64) (meta, error) {
	b := make([]byte, pageSize)
	if err := p.read(b, id); err != nil {
		return meta{}, err
	}
	b = b[pageHeader:]
	h := fnv.New64a()
	h.Write(b[:metaSize])
	if h.Sum64() != number.Uint64(b[metaSize:]) || number.Uint32(b) != metaMagic || number.Uint32(b[4:]) != metaVersion ||
		number.Uint32(b[8:]) != pageSize || number.Uint64(b[32:]) != noFreelist {
		return meta{}, damagef("page %d", id)
	}
	m := meta{root: number.Uint64(b[16:]), pages: number.Uint64(b[40:]), tx: number.Uint64(b[48:])}
	if m.pages > p.count {
		return meta{}, damagef("page %d, since the file is too short,", id)
	}
	return m, nil
}

// newest returns the newer valid meta page. If one of the two is damaged, it
// returns the other and an error: the damaged one may be the newer.
func (p *pages) newest() (meta, error) {
	a, err1 := p.meta(0)
	b, err2 := p.meta(1)
	if err1 == nil && (err2 != nil || a.tx > b.tx) {
		return a, err2
	}
	return b, errors.Join(err1, err2)
}

// checkFile returns a [*damage] if bbolt would panic, loop, or read outside its
// mapped memory. It reads every page in use.
func checkFile(path string) error {
	p, err := openPages(path)
	if err != nil {
		return err
	}
	defer p.f.Close()
	m, err := p.newest()
	if err != nil {
		if d, ok := errors.AsType[*damage](err); ok {
			return d
		}
		return err
	}
	return newWalker(p, m).database()
}

// walker visits all pages in use.
type walker struct {
	*pages
	meta  meta
	seen  []bool
	leaf  func(bucket string, key, value []byte)    // gets each element; may be nil
	bad   func(id uint64, bucket string, root bool) // gets each damaged page; if nil, the walk stops there
	spare []byte                                    // a page
}

func newWalker(p *pages, m meta) *walker {
	w := &walker{pages: p, meta: m, seen: make([]bool, m.pages), spare: make([]byte, pageSize)}
	for i := range min(2, len(w.seen)) {
		w.seen[i] = true
	}
	return w
}

// database visits the page that lists the buckets, and then each bucket.
func (w *walker) database() error {
	roots := map[string]uint64{}
	err := w.page(w.meta.root, "", nil, nil, 0, func(flags uint32, key, value []byte) error {
		if flags != flagBucket || len(value) != bucketHeader {
			return damagef("the list of buckets")
		}
		roots[string(key)] = number.Uint64(value)
		return nil
	})
	if err != nil {
		return err
	}
	for _, bucket := range buckets {
		root, ok := roots[bucket]
		if !ok {
			if w.bad == nil {
				return damagef("the list of buckets")
			}
			w.bad(0, bucket, false) // its page is unknown
			continue
		}
		if err := w.bucket(bucket, root); err != nil {
			return err
		}
	}
	if len(roots) > len(buckets) && w.bad == nil {
		return damagef("the list of buckets")
	}
	return nil
}

func (w *walker) bucket(bucket string, root uint64) error {
	return w.page(root, bucket, nil, nil, 0, func(flags uint32, key, value []byte) error {
		if flags != 0 {
			return damagef("a key of the bucket %s", bucket)
		}
		if w.leaf != nil {
			w.leaf(bucket, key, value)
		}
		return nil
	})
}

// page visits a page and those below it. Its keys must be in order, and less than
// high if high is not nil. The first key must be low if low is not nil: bbolt
// finds the element of a page on the page above by that key, and would leave a
// reference to the old page if it differed.
func (w *walker) page(id uint64, bucket string, low, high []byte, depth int, leaf func(flags uint32, key, value []byte) error) error {
	err := w.checkedPage(id, bucket, low, high, depth, leaf)
	if _, ok := errors.AsType[*damage](err); ok && w.bad != nil {
		w.bad(id, bucket, bucket == "")
		return nil
	}
	return err
}

func (w *walker) checkedPage(id uint64, bucket string, low, high []byte, depth int,
	leaf func(flags uint32, key, value []byte) error,
) error {
	if id >= w.meta.pages || w.seen[id] || depth > maxDepth {
		return damagef("the number of page %d", id)
	}
	b, flags, err := w.whole(id)
	if err != nil {
		return err
	}
	for i := range uint64(len(b) / pageSize) {
		if w.seen[id+i] {
			return damagef("page %d", id)
		}
	}
	// Parse all elements before using any, so that no damaged page is partly
	// used.
	elements, err := parse(b, flags)
	if err != nil {
		return fmt.Errorf("page %d: %w", id, err)
	}
	for i, e := range elements {
		if i > 0 && bytes.Compare(elements[i-1].key, e.key) >= 0 || i == 0 && low != nil && !bytes.Equal(e.key, low) || high != nil &&
			bytes.Compare(e.key, high) >= 0 {
			return damagef("the order of keys on page %d", id)
		}
	}
	for i := range uint64(len(b) / pageSize) {
		w.seen[id+i] = true
	}
	for i, e := range elements {
		if flags == flagLeaf {
			if err := leaf(e.flags, e.key, e.value); err != nil {
				return err
			}
			continue
		}
		above := high
		if i+1 < len(elements) {
			above = elements[i+1].key
		}
		if err := w.page(e.page, bucket, e.key, above, depth+1, leaf); err != nil {
			return err
		}
	}
	return nil
}

// whole reads a page with its overflow pages. If the result is a single leaf
// page, the next call overwrites it.
func (w *walker) whole(id uint64) (b []byte, flags uint16, err error) {
	b = w.spare
	if err := w.read(b, id); err != nil {
		return nil, 0, err
	}
	flags = number.Uint16(b[8:])
	more := uint64(number.Uint32(b[12:]))
	if number.Uint64(b) != id || flags != flagBranch && flags != flagLeaf || more >= w.meta.pages-id {
		return nil, 0, damagef("the head of page %d", id)
	}
	if more > 0 {
		b = make([]byte, (more+1)*pageSize)
		err = w.read(b, id)
	} else if flags == flagBranch {
		b = bytes.Clone(b)
	}
	return b, flags, err
}

// element is an element of a page.
type element struct {
	flags      uint32 // of a leaf
	key, value []byte
	page       uint64 // of a branch
	at         int    // where the key is
}

// parse returns the elements of a branch or leaf page. No page is empty: each
// bucket has a filler.
func parse(b []byte, flags uint16) ([]element, error) {
	count := int(number.Uint16(b[10:]))
	end := pageHeader + count*elementSize
	if end > len(b) || count == 0 {
		return nil, damagef("the number of elements")
	}
	elements := make([]element, count)
	for i := range elements {
		e, ok := parseElement(b, i, flags)
		// bbolt writes keys and values one after another, without gaps.
		if !ok || e.at != end {
			return nil, damagef("element %d", i)
		}
		elements[i] = e
		end += len(e.key) + len(e.value)
	}
	return elements, nil
}

// parseElement returns the i-th element of a page.
func parseElement(b []byte, i int, flags uint16) (e element, ok bool) {
	at := pageHeader + i*elementSize
	h := b[at:]
	var pos, ksize, vsize uint64
	if flags == flagBranch {
		pos, ksize, e.page = uint64(number.Uint32(h)), uint64(number.Uint32(h[4:])), number.Uint64(h[8:])
	} else {
		e.flags, pos, ksize, vsize = number.Uint32(h), uint64(number.Uint32(h[4:])), uint64(number.Uint32(h[8:])), uint64(number.Uint32(h[12:]))
	}
	key := uint64(at) + pos
	if ksize == 0 || key+ksize+vsize > uint64(len(b)) {
		return e, false
	}
	e.at = int(key)
	e.key, e.value = b[key:key+ksize:key+ksize], b[key+ksize:key+ksize+vsize:key+ksize+vsize]
	return e, true
}
