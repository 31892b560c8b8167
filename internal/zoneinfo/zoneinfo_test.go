package zoneinfo

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"cmp"
	"compress/gzip"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// goDatabase returns the folder of the database that Go comes with.
func goDatabase(t *testing.T) string {
	t.Helper()
	root, err := exec.CommandContext(t.Context(), "go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(strings.TrimSpace(string(root)), "lib", "time")
}

// goZones returns the zones in the database that Go comes with.
func goZones(t *testing.T) map[string][]byte {
	t.Helper()
	database, err := zip.OpenReader(filepath.Join(goDatabase(t), "zoneinfo.zip"))
	if err != nil {
		t.Fatal(err)
	}
	defer database.Close()
	zones := map[string][]byte{}
	for _, file := range database.File {
		if strings.HasSuffix(file.Name, "/") {
			continue
		}
		r, err := file.Open()
		if err != nil {
			t.Fatal(err)
		}
		if zones[file.Name], err = io.ReadAll(r); err != nil {
			t.Fatal(err)
		}
	}
	return zones
}

// writeArchive returns an archive of zones, with links for zones that are equal.
// Zones with the same present rule, which is the last line of their data, follow
// one another, so that they are compressed well.
func writeArchive(t *testing.T, zones map[string][]byte) []byte {
	t.Helper()
	var out bytes.Buffer
	zipped, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	files := tar.NewWriter(zipped)
	first := map[string]string{} // names by content
	rule := func(name string) []byte {
		data := bytes.TrimSuffix(zones[name], []byte("\n"))
		return data[bytes.LastIndexByte(data, '\n')+1:]
	}
	for _, name := range slices.SortedFunc(maps.Keys(zones), func(a, b string) int {
		return cmp.Or(bytes.Compare(rule(a), rule(b)), bytes.Compare(zones[a], zones[b]), strings.Compare(a, b))
	}) {
		data := zones[name]
		header := &tar.Header{Name: name, Mode: 0o644, Format: tar.FormatUSTAR}
		if first[string(data)] != "" {
			header.Typeflag, header.Linkname, data = tar.TypeLink, first[string(data)], nil
		} else {
			header.Typeflag, header.Size, first[string(data)] = tar.TypeReg, int64(len(data)), name
		}
		if err := files.WriteHeader(header); err != nil {
			t.Fatal(err)
		}
		if _, err := files.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	if err := files.Close(); err != nil {
		t.Fatal(err)
	}
	if err := zipped.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Every zone that Go knows is in the copy. With CI set, which runs with one
// version of Go, the copy must be exactly the one of that version.
func TestArchive(t *testing.T) {
	want := goZones(t)
	if os.Getenv("UPDATE_GOLDEN") != "" {
		if err := os.WriteFile("zoneinfo.tar.gz", writeArchive(t, want), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Skip("zoneinfo.tar.gz is written; run the test again without UPDATE_GOLDEN")
	}
	const advice = "; UPDATE_GOLDEN=1 go test ./internal/zoneinfo takes the database of this version of Go"
	for name := range want {
		data := zones()[name]
		if data == nil {
			t.Fatalf("%s is missing"+advice, name)
		}
		if _, err := time.LoadLocationFromTZData(name, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if os.Getenv("CI") != "" && !reflect.DeepEqual(zones(), want) {
		t.Error("zones differ from those of Go" + advice)
	}
}

// printZone is an environment variable with the name of a zone. If it is set, the
// test binary prints offsets instead of running the tests.
const printZone = "TEST_ZONEINFO_PRINT"

func TestMain(m *testing.M) {
	if name := os.Getenv(printZone); name != "" {
		printOffsets(name)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// printOffsets prints the offset of the zone in summer, or the error, and that of
// the local zone.
func printOffsets(name string) {
	summer := time.Date(2024, 7, 1, 12, 0, 0, 0, time.UTC)
	text := summer.Local().Format("local -0700 MST, ")
	if location, err := LoadLocation(name); err != nil {
		text += err.Error()
	} else {
		text += summer.In(location).Format(location.String() + " -0700 MST")
	}
	_, _ = os.Stdout.WriteString(text)
}

// A zone comes from the copy if the machine has no database, and the local zone
// is that in TZ.
func TestWithoutDatabase(t *testing.T) {
	if err := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "private", "mount", "-t", "tmpfs", "none", t.TempDir()).Run(); err != nil {
		t.Skip("hiding the database of the machine needs the right to mount: ", err)
	}
	for _, c := range []struct{ tz, zone, want string }{
		{"UTC", "Europe/Berlin", "local +0000 UTC, Europe/Berlin +0200 CEST"},
		{"America/New_York", "Asia/Calcutta", "local -0400 EDT, Asia/Calcutta +0530 IST"},
		{":Asia/Kolkata", "UTC", "local +0530 IST, UTC +0000 UTC"},
		{"Nowhere", "Nowhere", "local +0000 UTC, unknown time zone Nowhere"},
		{"UTC", "../Europe/Berlin", "local +0000 UTC, time: invalid location name"},
	} {
		// Nothing is at the places where package time looks.
		hide := `for d in "$1" /usr/share/zoneinfo /usr/share/lib/zoneinfo /usr/lib/locale/TZ /etc/zoneinfo; do [ ! -d "$d" ] || mount -t tmpfs none "$d"; done; exec "$0"`
		cmd := exec.CommandContext(t.Context(), "unshare", "-m", "--propagation", "private", "sh", "-c", hide, os.Args[0], goDatabase(t))
		cmd.Env = []string{"TZ=" + c.tz, printZone + "=" + c.zone, "PATH=" + os.Getenv("PATH")}
		got, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, got)
		}
		if string(got) != c.want {
			t.Errorf("TZ=%s, %s: %s; want %s", c.tz, c.zone, got, c.want)
		}
	}
}
