package appriseconfig

import (
	"errors"
	"io"
)

// MaxSize is the size of the largest file that [ReadAll] reads, in bytes.
const MaxSize = 1 << 20

// ReadAll returns the content of a configuration file.
func ReadAll(r io.Reader) ([]byte, error) {
	content, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	if len(content) > MaxSize {
		return nil, errors.New("the file is larger than 1 MiB")
	}
	return content, nil
}
