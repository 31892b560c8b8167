package notifier_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/caddy-notify/caddy-notify/notifier"
)

func TestSimilarServices(t *testing.T) {
	for word, want := range map[string]string{
		"dicord": "discord", "disc": "discord", "telegram": "tgram", "telegrm": "tgram",
		"gotfy": "gotify", "pushovr": "pover", "googlechat": "gchat",
		"": "", "x": "", "zzzzzzzz": "", strings.Repeat("discord", 100): "",
	} {
		got := notifier.SimilarServices(word)
		if want == "" && len(got) > 0 || want != "" && !slices.Contains(got, want) || len(got) > 3 {
			t.Errorf("%s: %q, want %s", word, got, want)
		}
	}
}

func TestWithSuggestion(t *testing.T) {
	unknown := errors.New("unknown")
	for url, want := range map[string]string{
		"gotfys://h/secret": "unknown; you may mean gotifys://",
		" Dicord://1/2":     "unknown; you may mean discord://",
		"zzzzzzzz://h":      "unknown",
		"discord://":        "unknown",
		"https://h":         "unknown",
		"nonsense":          "unknown",
	} {
		err := notifier.WithSuggestion(url, unknown)
		if !errors.Is(err, unknown) || !strings.HasPrefix(err.Error(), want) ||
			want == "unknown" && err != unknown || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want %s", url, err, want)
		}
	}
}
