package services

import "maps"

// filled drops what is empty from the fields of a JSON object, for services
// to which an empty field means something else than none.
func filled(fields map[string]any) map[string]any {
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
