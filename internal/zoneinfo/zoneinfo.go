// Package zoneinfo loads time zones, also on machines without a time zone
// database. It has the copy of the database that Go has in time/tzdata, but
// compressed: 67 KB instead of 408 KB of the program.
//
// On machines without a database, it also makes [time.Local] the zone in the
// environment variable TZ, as time/tzdata does.
package zoneinfo

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"
)

// archive has a file for each zone. A zone with several names is a file and hard
// links. UPDATE_GOLDEN=1 go test ./internal/zoneinfo writes it.
//
//go:embed zoneinfo.tar.gz
var archive []byte

func init() {
	if runtime.GOOS == "windows" {
		return // the zone is set in the registry
	}
	name := strings.TrimPrefix(os.Getenv("TZ"), ":")
	if _, err := time.LoadLocation(name); err == nil {
		return
	}
	if local, err := LoadLocation(name); err == nil {
		time.Local = local
	}
}

// LoadLocation is [time.LoadLocation], which looks for the zone in the database
// of the machine. If the zone is not there, LoadLocation takes it from the copy in
// the program.
func LoadLocation(name string) (*time.Location, error) {
	location, err := time.LoadLocation(name)
	if err == nil {
		return location, nil
	}
	data, ok := zones()[name]
	if !ok {
		return nil, err
	}
	return time.LoadLocationFromTZData(name, data)
}

// zones returns the zones in archive by name.
var zones = sync.OnceValue(func() map[string][]byte {
	zones, err := read(archive)
	if err != nil {
		panic("zoneinfo.tar.gz: " + err.Error())
	}
	return zones
})

func read(archive []byte) (map[string][]byte, error) {
	unzipped, err := gzip.NewReader(bytes.NewReader(archive))
	if err != nil {
		return nil, err
	}
	files := tar.NewReader(unzipped)
	zones := map[string][]byte{}
	for {
		file, err := files.Next()
		if err == io.EOF {
			return zones, nil
		}
		if err != nil {
			return nil, err
		}
		if file.Typeflag == tar.TypeLink {
			zones[file.Name] = zones[file.Linkname]
		} else if zones[file.Name], err = io.ReadAll(files); err != nil {
			return nil, err
		}
	}
}
