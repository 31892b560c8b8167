package api

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"maps"
	"os"
	"slices"
	"testing"
)

// TestDescriptionIsCurrent checks that the program has the present openapi.json.
func TestDescriptionIsCurrent(t *testing.T) {
	want, err := os.ReadFile("openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	if os.Getenv("UPDATE_GOLDEN") != "" {
		var out bytes.Buffer
		w, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(want); err != nil {
			t.Fatal(err)
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile("openapi.json.gz", out.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Skip("openapi.json.gz is written; run the test again without UPDATE_GOLDEN")
	}
	if !bytes.Equal(openAPI(), want) {
		t.Error("openapi.json.gz is older than openapi.json; write it with UPDATE_GOLDEN=1 go test ./caddyhttp/api")
	}
}

// TestDescriptionOfFields checks that the description has the same fields as
// the reader.
func TestDescriptionOfFields(t *testing.T) {
	var description struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal(openAPI(), &description); err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat([]string{fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat}, tagFields, attachFields)
	for name, more := range map[string][]string{"Message": nil, "Form": nil, "MultipartForm": {payloadPart}} {
		got := slices.Sorted(maps.Keys(description.Components.Schemas[name].Properties))
		if want := slices.Sorted(slices.Values(slices.Concat(fields, more))); !slices.Equal(got, want) {
			t.Errorf("%s describes %v, want %v", name, got, want)
		}
	}
	for _, name := range fields {
		if !isField(name) {
			t.Errorf("isField(%s) is false", name)
		}
	}
}
