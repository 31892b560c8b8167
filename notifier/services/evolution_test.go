package services

import (
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/internal/racetest"
)

func TestWhatsAppText(t *testing.T) {
	racetest.SkipIfSlow(t)
	for in, want := range map[string]string{
		"plain":                               "plain",
		"a **bold** and *slanted* b":          "a *bold* and _slanted_ b",
		"***both***":                          "*_both_*",
		"~~gone~~":                            "~gone~",
		`2 \* 3 \_ 4 \\ 5`:                    `2 * 3 _ 4 \ 5`,
		"run `rm **x**` now":                  "run ```rm **x**``` now",
		"```\na *b*\n```":                     "```\na *b*\n```",
		"[site](https://example.com/)":        "site (https://example.com/)",
		"[**site**](<https://example.com/a>)": "*site* (https://example.com/a)",
		"[https://example.com/](https://example.com/ \"top\")": "https://example.com/",
		"[x] and (y)":  "[x] and (y)",
		"**unfinished": "*unfinished",
		"`unfinished":  "`unfinished",
	} {
		if got := whatsappText(in); got != want {
			t.Errorf("%q becomes %q, want %q", in, got, want)
		}
	}
	// Long runs of unfinished markup are converted in a reasonable time.
	for _, s := range []string{"`", "[", "*", "](", "\\", "**`["} {
		whatsappText(strings.Repeat(s, 100_000))
	}
}
