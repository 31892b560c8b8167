package bolt

import (
	"encoding/binary"
	"hash/crc32"

	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/notifier/queue"
)

// written is the format of what this program writes. See [queue.Format] for when it changes. A
// database without a format was written before there were any; it has form 1, too.
var written = queue.Format{Written: 1, Needs: 1}

// keyFormat is the key of the format in the bucket meta. The value is not sealed, so that a program
// that is too old says so first, whatever later versions do with secrets: both numbers and a
// checksum.
var keyFormat = []byte("format")

const formatSize = 12

func encodeFormat(f queue.Format) []byte {
	b := binary.BigEndian.AppendUint32(nil, uint32(f.Written))
	b = binary.BigEndian.AppendUint32(b, uint32(f.Needs))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
}

// checkFormat returns the format that is stored as b, which is empty if there is none. The error says
// what to do if this program is too old for it, or is a [*damage].
func (d *database) checkFormat(b []byte) (f queue.Format, err error) {
	switch {
	case len(b) == 0:
		return f, nil
	case len(b) < formatSize || crc32.ChecksumIEEE(b[:formatSize-4]) != binary.BigEndian.Uint32(b[formatSize-4:]):
		return f, &damage{what: "the number of the form"}
	}
	f = queue.Format{Written: int(binary.BigEndian.Uint32(b)), Needs: int(binary.BigEndian.Uint32(b[4:]))}
	return f, f.Check(d.writes.Written)
}

// readFormat is checkFormat for the database.
func (d *database) readFormat(tx *bbolt.Tx) (f queue.Format, err error) {
	meta := tx.Bucket([]byte(bucketMeta))
	if meta == nil {
		return f, &damage{what: "the list of buckets"}
	}
	return d.checkFormat(meta.Get(keyFormat))
}

// putFormat stores what the format f of the database becomes when this program uses it.
func (d *database) putFormat(tx *bbolt.Tx, f queue.Format) error {
	return tx.Bucket([]byte(bucketMeta)).Put(keyFormat, encodeFormat(f.Join(d.writes)))
}
