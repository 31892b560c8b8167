package api

import (
	"encoding/json"
	"maps"
	"slices"
	"testing"
)

// TestDescriptionOfFields checks that the description has the same fields as
// the reader.
func TestDescriptionOfFields(t *testing.T) {
	var description struct {
		Schemas map[string]struct {
			Properties map[string]any
			AllOf      []struct{ Properties map[string]any } // a form, and what it has as well
		}
	}
	if err := json.Unmarshal(Components(), &description); err != nil {
		t.Fatal(err)
	}
	fields := slices.Concat([]string{
		fieldURLs, fieldBody, fieldTitle, fieldType, fieldFormat, fieldIncident, fieldTemplate, fieldAsk,
		fieldSendAt,
	}, tagFields, attachFields)
	for name, more := range map[string][]string{
		"Message": nil, "Form": askFields[1:],
		"MultipartForm": append(slices.Clone(askFields[1:]), payloadPart),
	} {
		got := slices.Collect(maps.Keys(description.Schemas[name].Properties))
		if parts := description.Schemas[name].AllOf; len(parts) > 0 {
			got = slices.Collect(maps.Keys(description.Schemas["Form"].Properties))
			got = slices.AppendSeq(got, maps.Keys(parts[len(parts)-1].Properties))
		}
		slices.Sort(got)
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
