package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/gob"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"slices"

	"github.com/google/uuid"
	"go.uber.org/zap"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// change is what a transaction changes. The file is a list of them.
type change struct {
	Messages  []*message
	Jobs      []queue.Job
	Forgotten []uuid.UUID
	Records   []queue.OwnedRecord // one without content is removed
	Health    []queue.Health      // of a destination that is neither known nor down it is removed
}

// message is a message with its jobs.
type message struct {
	Message queue.Message // without Files
	Files   [][]byte
	Jobs    []queue.Job
}

// Before each change are its size and its checksum.
const headSize = 4 + 4

// journal is the file. The changes are one stream of gob, so that it has the types once.
type journal struct {
	path       string
	file       *os.File // nil after an error: then the file is written anew
	enc        *gob.Encoder
	buf        bytes.Buffer
	size, base int64 // of the file, now and when it was written anew
}

// read calls apply with the changes of the file. The last one can be incomplete, after a crash: nobody
// was told that it is stored.
func (j *journal) read(log *zap.Logger, apply func(*change)) error {
	data, err := os.ReadFile(j.path)
	if os.IsNotExist(err) {
		return nil
	} else if err != nil {
		return err
	}
	written := len(bytes.TrimRight(data, "\x00")) // after a crash, room at the end can be unwritten
	var stream bytes.Buffer
	dec := gob.NewDecoder(&stream)
	for at := 0; at < len(data); {
		head := append(slices.Clone(data[at:min(at+headSize, len(data))]), make([]byte, headSize)...)
		size, sum := int(binary.BigEndian.Uint32(head)), binary.BigEndian.Uint32(head[4:])
		from, to := at+headSize, at+headSize+size
		if to > len(data) || size == 0 || crc32.ChecksumIEEE(data[from:to]) != sum {
			if to < written {
				return fmt.Errorf("%s is damaged at byte %d", j.path, at)
			}
			log.Warn("the end of the journal is incomplete, as after a crash", zap.Int("bytes", len(data)-at))
			return nil
		}
		stream.Write(data[from:to])
		c := new(change)
		if err := dec.Decode(c); err != nil {
			return fmt.Errorf("%s is damaged at byte %d: %w", j.path, at, err)
		}
		apply(c)
		at = to
	}
	return nil
}

// write appends a change, and returns when it is on the disk.
func (j *journal) write(c *change) error {
	j.buf.Reset()
	j.buf.Write(make([]byte, headSize))
	if err := j.enc.Encode(c); err != nil {
		return j.broken(err)
	}
	b := j.buf.Bytes()
	binary.BigEndian.PutUint32(b, uint32(len(b)-headSize))
	binary.BigEndian.PutUint32(b[4:], crc32.ChecksumIEEE(b[headSize:]))
	if _, err := j.file.Write(b); err != nil {
		return j.broken(err)
	}
	j.size += int64(len(b))
	return nil
}

func (j *journal) sync() error {
	if err := j.file.Sync(); err != nil {
		return j.broken(err)
	}
	return nil
}

// broken closes the file after an error: what it ends with is unknown.
func (j *journal) broken(err error) error {
	if j.file != nil {
		j.file.Close()
		j.file = nil
	}
	return err
}

// rewrite writes the file anew, with changes that together are all that is stored.
func (j *journal) rewrite(all []*change) error {
	_ = j.broken(nil)
	f, err := os.OpenFile(j.path+".new", os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	j.file, j.enc, j.size = f, gob.NewEncoder(&j.buf), 0
	for _, c := range all {
		if err := j.write(c); err != nil {
			return err
		}
	}
	if err := j.sync(); err != nil {
		return err
	}
	if err := os.Rename(j.path+".new", j.path); err != nil {
		return j.broken(err)
	}
	j.base = j.size
	dir, err := os.Open(filepath.Dir(j.path))
	if err != nil {
		return j.broken(err)
	}
	defer dir.Close()
	if err := dir.Sync(); err != nil {
		return j.broken(err)
	}
	return nil
}
