package rules

import (
	"cmp"
	"slices"

	"github.com/caddy-notify/caddy-notify/internal/wire"
)

// A small group is one record. A large group has its alerts in pieces, which are separate records,
// so that a change of one alert writes one piece. The record of the group then has the rest. An
// alert stays in its piece until the piece becomes too large.

// maxPiece is the average size of a piece, in bytes. No piece is more than twice as large, unless a
// single alert is.
const maxPiece = 64 << 10

// alertPiece is one of the pieces of a group.
type alertPiece struct {
	of     int // how many pieces the group has
	alerts []RulerAlert
}

func (p *alertPiece) fields(c *wire.Codec) {
	wire.Number(c, 1, &p.of)
	wire.Records(c, 2, &p.alerts, (*RulerAlert).fields)
}

// Pieces returns how many pieces the stored group has; 0 if it is one record.
func (g *AlertGroup) Pieces() int { return g.pieces }

// PieceBytes returns how many bytes the pieces of the stored group have.
func (g *AlertGroup) PieceBytes() int64 { return g.pieceBytes }

// count chooses the number of pieces. The number changes only if the group has grown or shrunk a
// lot, because a new number writes all pieces.
func (g *AlertGroup) count() {
	n, size := g.pieces, g.size()
	for size > max(n, 1)*maxPiece {
		n = 2 * max(n, 1)
	}
	for size < n*maxPiece/4 {
		n /= 2
	}
	if n <= 1 {
		n = 0
	}
	if n != g.pieces {
		g.pieces = n
		for i := range g.Alerts {
			g.Alerts[i].piece = 0
		}
	}
}

// place chooses a piece for each alert that has none, or whose piece has no room for it.
func (g *AlertGroup) place() {
	sizes, homeless := make([]int, g.pieces), []*RulerAlert(nil)
	for i := range g.Alerts {
		a := &g.Alerts[i]
		if a.number == 0 {
			g.numbers++
			a.number = g.numbers
		}
		if a.piece == 0 || sizes[a.piece-1] > 0 && sizes[a.piece-1]+a.size() > 2*maxPiece {
			homeless = append(homeless, a)
			continue
		}
		sizes[a.piece-1] += a.size()
	}
	for _, a := range homeless {
		least := 0
		for i := range sizes {
			if sizes[i] < sizes[least] {
				least = i
			}
		}
		a.piece = least + 1
		sizes[least] += a.size()
	}
}

// Cut returns the content of the group's record, and the contents of its pieces, which have the
// alerts if they are many. [AlertGroup.Join] is the inverse.
func (g *AlertGroup) Cut() (head *AlertGroup, pieces [][]byte) {
	g.pieceBytes = 0
	if g.count(); g.pieces == 0 {
		return g, nil
	}
	g.place()
	all := make([]alertPiece, g.pieces)
	for i := range g.Alerts {
		p := &all[g.Alerts[i].piece-1]
		p.alerts = append(p.alerts, g.Alerts[i])
	}
	for i := range all {
		all[i].of = g.pieces
		pieces = append(pieces, wire.Append(nil, &all[i], (*alertPiece).fields))
		g.pieceBytes += int64(len(pieces[i]))
	}
	whole := *g
	whole.Alerts = nil
	return &whole, pieces
}

// Join adds the alerts of the pieces, in the order of Cut. It leaves out pieces that are missing,
// damaged or from another number of pieces, and reports whether all are there.
func (g *AlertGroup) Join(pieces [][]byte) (whole bool) {
	whole = len(pieces) >= g.pieces
	for i, b := range pieces[:min(len(pieces), g.pieces)] {
		var p alertPiece
		if err := wire.Decode(b, &p, (*alertPiece).fields); err != nil || p.of != g.pieces {
			whole = false
			continue
		}
		for j := range p.alerts {
			p.alerts[j].piece = i + 1
		}
		g.Alerts = append(g.Alerts, p.alerts...)
	}
	if g.pieces > 0 {
		slices.SortStableFunc(g.Alerts, func(a, b RulerAlert) int { return cmp.Compare(a.number, b.number) })
	}
	return whole
}
