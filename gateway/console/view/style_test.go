package view

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

var (
	variable  = regexp.MustCompile(`--([a-z0-9-]+): ([^;]+);`)
	dimension = regexp.MustCompile(`font-size: ([^;}]+)`)
	space     = regexp.MustCompile(`(?:margin|padding|gap)[a-z-]*: (?:[^;}]*[ (])?(?:0?\.\d+|1(?:\.\d+)?|2)rem[^;}]*`)
)

// colours returns the colours of the style sheet, light and dark.
func colours(t *testing.T) (light, dark map[string]string) {
	t.Helper()
	css := readFile(mainStyle)
	first, rest, ok := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("the style sheet has no dark colours")
	}
	read := func(text string) map[string]string {
		out := map[string]string{}
		for _, m := range variable.FindAllStringSubmatch(text, -1) {
			out[m[1]] = m[2]
		}
		return out
	}
	second, _, _ := strings.Cut(rest, "}\n}")
	return read(first), read(second)
}

// luminance returns the relative luminance of a colour (WCAG 2.2).
func luminance(t *testing.T, colour string) float64 {
	t.Helper()
	n, err := strconv.ParseUint(strings.TrimPrefix(colour, "#"), 16, 32)
	if err != nil {
		t.Fatalf("%q is no colour", colour)
	}
	part := func(c uint64) float64 {
		x := float64(c&0xff) / 255
		if x <= 0.04045 {
			return x / 12.92
		}
		return math.Pow((x+0.055)/1.055, 2.4)
	}
	return 0.2126*part(n>>16) + 0.7152*part(n>>8) + 0.0722*part(n)
}

// contrast returns the contrast of two colours.
func contrast(t *testing.T, a, b string) float64 {
	t.Helper()
	x, y := luminance(t, a), luminance(t, b)
	return (max(x, y) + 0.05) / (min(x, y) + 0.05)
}

// TestContrast checks that each text can be read on each background, light and dark, and that
// the parts of a bar can be told from the background.
func TestContrast(t *testing.T) {
	light, dark := colours(t)
	for scheme, c := range map[string]map[string]string{"light": light, "dark": dark} {
		for _, text := range []string{"text", "soft", "accent", "success", "warning", "failure"} {
			for _, back := range []string{"back", "card", "front"} {
				if ratio := contrast(t, c[text], c[back]); ratio < 4.5 {
					t.Errorf("%s: %s on %s has the contrast %.2f", scheme, text, back, ratio)
				}
			}
		}
		for _, pair := range [][2]string{{"on-accent", "accent"}, {"front", "failure"}} {
			if ratio := contrast(t, c[pair[0]], c[pair[1]]); ratio < 4.5 {
				t.Errorf("%s: %s on %s has the contrast %.2f", scheme, pair[0], pair[1], ratio)
			}
		}
	}
}

// TestMeasures checks that the rules use the measures in the head of the style sheet.
func TestMeasures(t *testing.T) {
	css := readFile(mainStyle)
	_, rules, ok := strings.Cut(css, "@media (prefers-color-scheme: dark)")
	if !ok {
		t.Fatal("the style sheet has no colours for the dark")
	}
	rules, field, ok := strings.Cut(rules, "/* iOS zooms")
	if !ok || !strings.Contains(field, "font-size: 1rem") {
		t.Fatal("fields have no size of their own on a touch screen")
	}
	for _, m := range dimension.FindAllStringSubmatch(rules, -1) {
		if !slices.Contains([]string{"var(--text-size)", "var(--small)", "var(--large)", "inherit"}, m[1]) {
			t.Errorf("a rule has text of the size %s", m[1])
		}
	}
	for _, m := range space.FindAllString(rules, -1) {
		t.Errorf("a rule has a space that is not of the scale: %s", m)
	}
	if !strings.Contains(css, "font-variant-numeric: tabular-nums") {
		t.Error("digits are not as wide as one another")
	}
}
