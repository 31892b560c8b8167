package rules

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// restored returns a group as it is read after it was stored.
func restored(t *testing.T, g *AlertGroup) *AlertGroup {
	t.Helper()
	record, pieces := g.encode()
	got, err := decode(record, (*AlertGroup).Fields)
	if err != nil {
		t.Fatal(err)
	}
	if !got.Join(pieces) {
		t.Fatal("a piece is missing")
	}
	return got
}

var pieceStart = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

// sized returns an alert that fires with a text of a size.
func sized(i, size int) RulerAlert {
	text := []string{"summary", strings.Repeat("x", size)}
	return RulerAlert{Fingerprint: fmt.Sprintf("%016x", i), Annotations: text, At: pieceStart, Ends: pieceStart.Add(time.Hour)}
}

// changed returns how many pieces are not as before, and the bytes of all that is written.
func changed(beforeHead, head []byte, before, pieces [][]byte) (n, written int) {
	if !bytes.Equal(beforeHead, head) {
		written += len(head)
	}
	for i, b := range pieces {
		if i >= len(before) || !bytes.Equal(b, before[i]) {
			n++
			written += len(b)
		}
	}
	return n, written
}

// TestAlertPieces checks that groups of all sizes are read as they were stored, with the alerts in
// their order. A change of one alert writes one piece of bounded size, also if the alerts of the
// piece have grown. A group that has become small is one record.
func TestAlertPieces(t *testing.T) {
	racetest.SkipIfSlow(t)
	for _, c := range []struct{ alerts, size, pieces int }{
		{1, 10, 0}, {100, 400, 0}, {130, 400, 2}, {1000, 500, 16}, {3000, 2500, 128}, {15, 500_000, 128}, {2, 4 << 20, 0},
	} {
		t.Run(fmt.Sprint(c.alerts, " of ", c.size), func(t *testing.T) {
			g, u, random := new(AlertGroup), new(Uptime), rand.New(rand.NewPCG(1, 2))
			var posts []RulerAlert
			for i := range c.alerts {
				posts = append(posts, sized(i, c.size))
			}
			if left := g.Post(pieceStart, u, posts, groupTimes); left > 0 {
				posts = posts[:len(posts)-left]
			}
			now := pieceStart
			for range 20 {
				now = now.Add(time.Second)
				head, pieces := g.encode()
				g = restored(t, g)
				i := random.IntN(len(posts))
				p := g.Alerts[i]
				if p.Fingerprint != posts[i].Fingerprint {
					t.Fatalf("alert %d is %s", i, p.Fingerprint)
				}
				p.At, p.Resolved = now, !p.Resolved
				p.Annotations = []string{"summary", strings.Repeat("y", min(2*c.size, c.size+1000))}
				if c.alerts > 1000 {
					p.Annotations[1] = p.Annotations[1][:c.size]
				}
				g.Post(now, u, []RulerAlert{p}, groupTimes)
				nextHead, next := g.encode()
				if len(next) == len(pieces) && len(next) > 0 {
					if n, written := changed(head, nextHead, pieces, next); n != 1 || written > max(2*maxPiece, p.size()+maxPiece)+1<<10 {
						t.Errorf("%d pieces of %d are written, %d bytes", n, len(next), written)
					}
				}
			}
			if got := restored(t, g); len(got.Alerts) != len(posts) || !reflect.DeepEqual(restored(t, got), got) {
				t.Error("it is not read as it was stored")
			}
			if _, pieces := g.encode(); c.pieces > 0 && (len(pieces) < c.pieces || len(pieces) > 2*c.pieces) {
				t.Errorf("%d pieces, want %d", len(pieces), c.pieces)
			}
			g.Alerts = g.Alerts[:1]
			if g = restored(t, g); g.size() < maxPiece/4 && g.Pieces() > 0 {
				t.Errorf("one alert is in %d pieces", g.Pieces())
			}
		})
	}
}

// TestAlertPieceGrows checks that a piece remains small when all of its alerts grow.
func TestAlertPieceGrows(t *testing.T) {
	g, u := new(AlertGroup), new(Uptime)
	for i := range 1000 {
		g.Post(pieceStart, u, []RulerAlert{sized(i, 500)}, groupTimes)
	}
	g = restored(t, g)
	_, before := g.encode()
	var posts []RulerAlert
	for _, a := range g.Alerts {
		if a.piece == 1 {
			posts = append(posts, sized(0, 6_000))
			posts[len(posts)-1].Fingerprint = a.Fingerprint
		}
	}
	g.Post(pieceStart, u, posts, groupTimes)
	_, pieces := g.encode()
	if len(pieces) != len(before) || len(posts)*6_000 < 3*maxPiece {
		t.Fatalf("%d pieces before, %d after; %d alerts have grown", len(before), len(pieces), len(posts))
	}
	for i, b := range pieces {
		if len(b) > 2*maxPiece+1<<12 {
			t.Errorf("piece %d has %d bytes", i, len(b))
		}
	}
	byNumber := func(a, b RulerAlert) int { return a.number - b.number }
	if got := restored(t, g); len(got.Alerts) != 1000 || !slices.IsSortedFunc(got.Alerts, byNumber) {
		t.Errorf("%d alerts, or their order is wrong", len(got.Alerts))
	}
}

// TestEarlierAlertGroup checks that a large group of an earlier version, which is one record, is
// read, and is in pieces when it is stored again. A piece that is missing, or is one of another
// number of pieces, is noticed.
func TestEarlierAlertGroup(t *testing.T) {
	g := &AlertGroup{Key: "ops", opened: true}
	for i := range 1000 {
		g.Alerts = append(g.Alerts, sized(i, 500))
	}
	read, err := decode(wire.Append(nil, g, (*AlertGroup).Fields), (*AlertGroup).Fields)
	if err != nil || !read.Join(nil) || len(read.Alerts) != 1000 || !read.opened {
		t.Fatalf("it is not read: %v", err)
	}
	head, pieces := read.encode()
	if len(pieces) < 8 || len(head) > 100 {
		t.Errorf("%d pieces, and a record of %d bytes", len(pieces), len(head))
	}
	instead := func(b []byte) [][]byte { return slices.Concat(pieces[:3], [][]byte{b}, pieces[4:]) }
	for _, wrong := range [][][]byte{nil, pieces[:3], instead(nil), instead([]byte{8, 2})} {
		if got, _ := decode(head, (*AlertGroup).Fields); got.Join(wrong) {
			t.Errorf("%d pieces are taken for all", len(wrong))
		}
	}
	got := restored(t, read)
	for i := range got.Alerts {
		if got.Alerts[i].Fingerprint != g.Alerts[i].Fingerprint {
			t.Fatalf("alert %d is %s", i, got.Alerts[i].Fingerprint)
		}
	}
}
