package services

import "maps"

// omitEmpty deletes the empty fields of a JSON object, for services that treat an
// empty field differently from a missing one.
func omitEmpty(fields map[string]any) map[string]any {
	maps.DeleteFunc(fields, func(_ string, v any) bool {
		switch v := v.(type) {
		case string:
			return v == ""
		case []string:
			return len(v) == 0
		case map[string]string:
			return len(v) == 0
		case []map[string]string:
			return len(v) == 0
		}
		return v == nil
	})
	return fields
}
