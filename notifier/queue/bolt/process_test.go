package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.etcd.io/bbolt"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/notifier/queue"
	"github.com/caddy-notify/caddy-notify/notifier/queue/queuetest"
)

// TestMain runs child in a child process of a test. Tests that start processes
// are not parallel: between fork and exec a new process has the locks of all
// open stores, so that a test that closes its store cannot open it again.
func TestMain(m *testing.M) {
	if dir := os.Getenv("QUEUE_TEST_CHILD"); dir != "" {
		child(dir, os.Getenv("QUEUE_TEST_NOSYNC") != "")
		return
	}
	os.Exit(m.Run())
}

// child accepts and settles messages until it is killed. It prints the ID of
// each message accepted and of each delivered.
func child(dir string, noSync bool) {
	s, err := Open(Options{Path: dir, NoSync: noSync})
	if err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	var events queuetest.Printer
	ctx := context.Background()
	for range 16 {
		go func() {
			for {
				e := newEntry(bytes.Repeat([]byte("text"), 256), "json://host")
				if rand.IntN(20) == 0 {
					e.Message.Files = []queue.File{{Size: 4, ReaderAt: strings.NewReader("file")}}
				}
				if err := s.Accept(ctx, 1<<40, e); err == nil {
					events.Print(queuetest.Accepted, e.Message.ID)
				}
			}
		}()
	}
	for {
		jobs, _, _ := s.Claim(ctx, queue.Claim{Now: time.Now(), Max: 8})
		for _, j := range jobs {
			events.Print(queuetest.Delivered, j.Message)
			j.Status, j.Updated = queue.Delivered, time.Now()
			if err := s.Settle(ctx, &queue.Settlement{Job: &j}); err != nil {
				fmt.Println("error", err)
			}
		}
	}
}

// runChild runs a child for a while and ends it with stop.
func runChild(t *testing.T, reports *queuetest.Reports, dir string, noSync bool, stop func(p *os.Process)) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "QUEUE_TEST_CHILD="+dir)
	if noSync {
		cmd.Env = append(cmd.Env, "QUEUE_TEST_NOSYNC=1")
	}
	wait := reports.Start(t, cmd)
	stop(cmd.Process)
	wait()
}

// TestKill checks that accepted messages survive kill -9.
func TestKill(t *testing.T) {
	dir := t.TempDir()
	var reports queuetest.Reports
	const kills = 5
	for range kills {
		runChild(t, &reports, dir, false, func(p *os.Process) {
			reports.Wait(t, 100+rand.IntN(200))
			_ = p.Kill()
		})
	}
	s, err := Open(Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lost, twice := reports.Lost(t, s)
	t.Logf("%d accepted, %d lost, %d delivered twice", reports.Accepted(), lost, twice)
	if reports.Accepted() == 0 || lost > 0 || twice > kills*8 {
		t.Error("messages are lost, or were delivered twice although they were not in progress")
	}
	// Attachments of ended and of refused messages are removed.
	files, err := os.ReadDir(filepath.Join(dir, "files"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name, _, _ := strings.Cut(file.Name(), ".")
		if _, release, err := s.Load(t.Context(), uuid.MustParse(name)); err != nil {
			t.Errorf("%s: %v", file.Name(), err)
		} else {
			release()
		}
	}
}

func TestSecondProcess(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "QUEUE_TEST_CHILD="+dir)
	out, err := cmd.Output()
	if err == nil || !strings.Contains(string(out), dir) || !strings.Contains(string(out), "another process") {
		t.Errorf("%s, %v", out, err)
	}
	if _, err := Open(Options{Path: dir}); err == nil {
		t.Error("the same process opens the folder twice")
	} else if _, ok := errors.AsType[*LockedError](err); !ok {
		t.Error(err)
	}
}

// TestFolder checks the modes of files, and that they contain no plain text.
func TestFolder(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "notify", "queue")
	s, err := Open(Options{Path: dir})
	if err != nil {
		t.Fatal(err)
	}
	secrets := []string{
		"text of the message", "json://user:password@host", "the summary", "the state", "the result", "the reason",
		"idempotency", "hash of the request", "content of the file",
	}
	for _, status := range []queue.Status{queue.Queued, queue.Dead, queue.Delivered} {
		e := newEntry([]byte(secrets[0]), secrets[1])
		e.Message.Summary, e.Message.Key, e.Message.Request = []byte(secrets[2]), secrets[6]+status.String(), []byte(secrets[7])
		e.Message.Files = []queue.File{{Size: int64(len(secrets[8])), ReaderAt: strings.NewReader(secrets[8])}}
		j := &e.Jobs[0]
		j.Status, j.State, j.Result, j.Reason = status, []byte(secrets[3]), []byte(secrets[4]), secrets[5]
		if err := s.Accept(t.Context(), 1<<40, e); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	err = filepath.WalkDir(filepath.Dir(dir), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		want := fs.FileMode(0o600)
		if d.IsDir() {
			want = 0o700 | fs.ModeDir
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %s", path, info.Mode())
		}
		if d.IsDir() {
			return nil
		}
		data, err := os.ReadFile(path)
		for _, secret := range secrets {
			if bytes.Contains(data, []byte(secret)) {
				t.Errorf("%s contains %q in plain text", path, secret)
			}
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

func TestKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open := func(secret string) error {
		s, err := Open(Options{Path: dir, Secret: secret})
		if err == nil {
			err = s.Accept(t.Context(), 1<<40, newEntry([]byte("text"), "a"))
			s.Close()
		}
		return err
	}
	if err := open(""); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, "queue.db"))
	if err != nil {
		t.Fatal(err)
	}
	if err := open("a secret that is not the right one"); !errors.Is(err, errSecret) || !strings.Contains(err.Error(), dir) {
		t.Errorf("the wrong secret: %v", err)
	}
	key := filepath.Join(dir, "key")
	if err := os.Rename(key, key+".lost"); err != nil {
		t.Fatal(err)
	}
	if err := open(""); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), "restore") {
		t.Errorf("the lost key: %v", err)
	}
	if _, err := os.Stat(key); err == nil {
		t.Error("a new key is made")
	}
	after, err := os.ReadFile(filepath.Join(dir, "queue.db"))
	if err != nil || !bytes.Equal(before, after) {
		t.Errorf("the database has changed, %v", err)
	}
	if err := os.Rename(key+".lost", key); err != nil {
		t.Fatal(err)
	}
	if err := open(""); err != nil {
		t.Error(err)
	}
	if err := open("too short"); err == nil || strings.Contains(err.Error(), "too short\"") {
		t.Errorf("a short secret: %v", err)
	}
}

// mount mounts a file system until the test ends.
func mount(t *testing.T, args ...string) (dir string, unmount func()) {
	t.Helper()
	dir = t.TempDir()
	if os.Getuid() != 0 {
		t.Skip("mounting needs root")
	}
	if out, err := exec.Command("mount", append(args, dir)...).CombinedOutput(); err != nil {
		t.Skipf("mount: %s", out)
	}
	unmount = sync.OnceFunc(func() {
		if out, err := exec.Command("umount", dir).CombinedOutput(); err != nil {
			t.Errorf("umount: %s", out)
		}
	})
	t.Cleanup(unmount)
	return dir, unmount
}

// TestDamageOnFullDisk checks that the process continues if a commit fails
// while a page that it does not need is damaged. After a failed commit bbolt
// reads all pages in a goroutine that it starts, and a panic there once ended
// the process.
func TestDamageOnFullDisk(t *testing.T) {
	t.Parallel()
	dir, _ := mount(t, "-t", "tmpfs", "-o", "size=16m", "tmpfs")
	log, text := logged()
	s, err := Open(Options{Path: filepath.Join(dir, "queue"), Logger: log})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var accepted []uuid.UUID
	accept := func(e *queue.Entry) error {
		err := s.Accept(t.Context(), 1<<40, e)
		if err == nil {
			accepted = append(accepted, e.Message.ID)
		}
		return err
	}
	for range 100 {
		if err := accept(newEntry(randomText(1000), "a")); err != nil {
			t.Fatal(err)
		}
	}
	jobs, _, err := s.Claim(t.Context(), queue.Claim{Now: time.Now(), Max: 1})
	if err != nil || len(jobs) != 1 {
		t.Fatal(jobs, err)
	}
	ballast := filepath.Join(dir, "ballast")
	_ = os.WriteFile(ballast, make([]byte, 16<<20), 0o600) // fails when the disk is full
	// The page with the oldest texts; the job that is settled is elsewhere.
	f, err := os.OpenFile(s.dbPath(), os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(bytes.Repeat([]byte{0xff}, pageHeader), firstLeaf(t, s, bucketBodies)*pageSize); err != nil {
		t.Fatal(err)
	}
	j := jobs[0]
	j.Status, j.Updated, j.Due, j.State = queue.Queued, time.Now(), time.Now(), randomText(20<<20)
	err = s.Settle(t.Context(), &queue.Settlement{Job: &j})
	if _, ok := errors.AsType[*queue.UnavailableError](err); !ok {
		t.Fatal(err)
	}
	if err := os.Remove(ballast); err != nil {
		t.Fatal(err)
	}
	for accept(newEntry([]byte("text"), "a")) != nil {
		time.Sleep(coolDown / 10)
	}
	for _, id := range accepted {
		_, release, err := s.Load(t.Context(), id)
		if err == nil {
			release()
		} else if !strings.Contains(text(), id.String()) {
			t.Errorf("not reported: message %s: %v", id, err)
		}
	}
}

// firstLeaf returns the number of the page with the first records of a bucket.
func firstLeaf(t *testing.T, s *Store, bucket string) (id int64) {
	t.Helper()
	err := s.view(func(tx *bbolt.Tx) error {
		p, err := openPages(s.dbPath())
		if err != nil {
			return err
		}
		defer p.f.Close()
		id = int64(tx.Bucket([]byte(bucket)).RootPage())
		b := make([]byte, pageSize)
		for {
			if err := p.read(b, uint64(id)); err != nil {
				return err
			}
			if number.Uint16(b[8:]) == flagLeaf {
				return nil
			}
			e, _ := parseElement(b, 0, flagBranch)
			id = int64(e.page)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// TestPowerCut copies the store's device while messages are accepted. The copy
// has the content that a power cut would leave, so it must have all messages
// accepted before. Without syncing, messages must be missing; otherwise the
// test proves nothing. There are three cuts, or one if CI is not set.
func TestPowerCut(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	for _, noSync := range []bool{false, true} {
		cuts, lost, damaged, total := 0, 0, 0, 0
		for ; cuts < racetest.Amount(3, 1) || noSync && cuts < 3 && lost+damaged == 0; cuts++ {
			l, d, n := powerCut(t, noSync)
			lost, total = lost+l, total+n
			if d {
				damaged++
			}
		}
		t.Logf("without syncing: %t: %d accepted, %d lost, %d of %d files unusable", noSync, total, lost, damaged, cuts)
		if !noSync && (lost > 0 || damaged > 0) {
			t.Error("messages are lost")
		}
		if noSync && lost == 0 && damaged == 0 {
			t.Error("nothing is lost without syncing: the test proves nothing")
		}
	}
}

func powerCut(t *testing.T, noSync bool) (lost int, damaged bool, total int) {
	device := filepath.Join(t.TempDir(), "device")
	if err := os.WriteFile(device, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(device, 64<<20); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mkfs.ext4", "-q", "-F", device).CombinedOutput(); err != nil {
		t.Skipf("mkfs.ext4: %s, %v", out, err)
	}
	dir, unmount := mount(t, "-o", "loop", device)
	var reports queuetest.Reports
	after := device + ".cut"
	runChild(t, &reports, filepath.Join(dir, "queue"), noSync, func(p *os.Process) {
		reports.Wait(t, 100+rand.IntN(400))
		if err := p.Signal(syscall.SIGTERM); err != nil { // its output is complete; programs in the background ignore os.Interrupt
			t.Error(err)
		}
	})
	// Data that was not synced is not on the device yet.
	if out, err := exec.Command("cp", "--sparse=always", device, after).CombinedOutput(); err != nil {
		t.Fatalf("cp: %s", out)
	}
	unmount()
	dir, unmount = mount(t, "-o", "loop", after)
	defer unmount()
	s, err := Open(Options{Path: filepath.Join(dir, "queue")})
	if err != nil {
		return 0, true, reports.Accepted()
	}
	defer s.Close()
	lost, _ = reports.Lost(t, s)
	return lost, false, reports.Accepted()
}
