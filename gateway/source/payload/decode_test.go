package payload

import (
	"strings"
	"testing"
)

// TestDecodeLimits checks that long and deep values are cut, and that other texts than JSON are refused.
func TestDecodeLimits(t *testing.T) {
	many := `[` + strings.Repeat(`{"a":[1,2,3]},`, 99_999) + `1]`
	v, err := Decode([]byte(many))
	list, _ := v.([]any)
	if err != nil || len(list) != 100_000 || list[MaxItems-1] == nil || list[MaxItems] != nil {
		t.Errorf("%d items, %v", len(list), err)
	}
	if _, err := Decode([]byte(strings.Repeat(`{"a":`, 200) + "1" + strings.Repeat("}", 200))); err != nil {
		t.Error("a deep object:", err)
	}
	for _, text := range []string{``, `{`, `{"a"`, `{"a":1}x`, `nul`, `[1,]`, strings.Repeat("[", 1<<20)} {
		if _, err := Decode([]byte(text)); err == nil {
			t.Errorf("invalid JSON is accepted: %.20s", text)
		}
	}
}
