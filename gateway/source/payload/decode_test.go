package payload

import (
	"reflect"
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

// TestDecodeTexts checks texts that are parts of the JSON text, and others, which have escapes or are no UTF-8.
func TestDecodeTexts(t *testing.T) {
	text := " {\"a\" :\n\"plain\", \"\":\"\",\"\\u0061b\":\"\\\"\\u00e9\\ud83d\\ude00\\\\\", \"é\": [ \"x\" , \"\\\"\" ,\"\xff!\"],\"n\":-1}\n"
	want := map[string]any{"a": "plain", "": "", "ab": "\"é😀\\", "é": []any{"x", `"`, "\uFFFD!"}, "n": int64(-1)}
	body := []byte(text)
	got, err := Decode(body)
	clear(body) // the values do not depend on it
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%q, %v instead of %q", got, err, want)
	}
	if _, err := Decode([]byte(`{1:2}`)); err == nil {
		t.Error("a name that is a number is accepted")
	}
}
