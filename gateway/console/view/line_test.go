package view

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"
	"time"
)

// TestPicture checks that each kind of point has a picture, which is well-formed, with the ways to its neighbours.
func TestPicture(t *testing.T) {
	kinds := []PointKind{
		PointTold, PointFailed, PointSending, PointSilent, PointNext, PointLater, PointUntold, PointAgain, PointNow,
		PointBegins, PointEnds, PointTaken, PointResolved, PointNobody,
	}
	if len(kinds) != len(marks) {
		t.Errorf("%d kinds have marks", len(marks))
	}
	for _, k := range kinds {
		l := NewLine([]Point{
			{Kind: PointTold, At: noon.Add(-time.Minute), Silent: true}, {Kind: k, At: noon}, {Kind: PointLater, At: noon.Add(time.Hour)},
		}, noon)
		svg := string(l.Points[1].Picture())
		for d := xml.NewDecoder(strings.NewReader(svg)); ; {
			if _, err := d.Token(); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v: %s", k, err, svg)
			}
		}
		want := `<rect class="band to"/><rect class="way gone to"/><rect class="way ahead from"/><g class="point"><`
		if !strings.Contains(svg, want) {
			t.Errorf("%s: %s", k, svg)
		}
	}
}
