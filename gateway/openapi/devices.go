package openapi

import "net/http"

// Devices describes /notify/{KEY}/devices.
func Devices() About {
	return About{Operations: []Operation{{
		Method: http.MethodGet, ID: "listDevices", Tag: ofMessages, Secrets: WithoutSecret | WithLogin,
		Summary: "List the devices of a key (with push)",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The phones and browsers that have subscribed.", listOf(bodyOf("Device"))),
			http.StatusForbidden:          result("The client may not manage."),
			http.StatusNotFound:           result(noSuchKey),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPost, ID: "addDevice", Tag: ofMessages, Secrets: WithoutSecret | WithLogin,
		Summary: "Subscribe a device to a key (with push)",
		Description: "The device becomes a destination of the key. It gets the pushes of the key, and a secret with which it can change and " +
			"remove itself.",
		Body: forms(bodyOf("NewDevice"), mediaJSON),
		Answers: map[int]Answer{
			http.StatusCreated: answersJSON("The device, with its secret, which is shown once.", bodyOf("Device")).
				header("Location", Schema{"description": "The address of the device.", "schema": text()}),
			http.StatusBadRequest:            result("A field is missing or wrong, or the push service is not known. The error says which."),
			http.StatusForbidden:             result("An invitation is needed, or it is used up; or a page of another site sent the request."),
			http.StatusConflict:              result("The key has as many devices as it can have."),
			http.StatusRequestEntityTooLarge: result(deviceBodyTooLarge),
			http.StatusUnsupportedMediaType:  result(notJSON),
			http.StatusTooManyRequests:       result("Too many devices were added from this address."),
			http.StatusServiceUnavailable:    result(queueUnusable),
		},
	}}}
}

// Device describes /notify/{KEY}/devices/{ID}.
func Device() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodGet, ID: "getDevice", Tag: ofMessages, Secrets: WithDevice,
		Summary: "Get a device, with its secret as Authorization: Bearer",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device.", bodyOf("Device")),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}, {
		Method: http.MethodPut, ID: "changeDevice", Tag: ofMessages, Secrets: WithDevice,
		Summary:     "Change a device, with its secret as Authorization: Bearer",
		Description: "Fields that are missing stay as they are. A browser calls it when its subscription changes.",
		Body:        forms(bodyOf("DeviceChange"), mediaJSON),
		Answers: map[int]Answer{
			http.StatusOK:                    answersJSON("The device.", bodyOf("Device")),
			http.StatusBadRequest:            result("A field is wrong. The error says which."),
			http.StatusUnauthorized:          result(notOwnDevice),
			http.StatusForbidden:             result(foreignPage),
			http.StatusRequestEntityTooLarge: result(deviceBodyTooLarge),
			http.StatusUnsupportedMediaType:  result(notJSON),
			http.StatusServiceUnavailable:    result(queueUnusable),
		},
	}, {
		Method: http.MethodDelete, ID: "removeDevice", Tag: ofMessages, Secrets: WithoutSecret | WithDevice | WithLogin,
		Summary: "Remove a device, with its secret as Authorization: Bearer, or as who may manage",
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device that was removed.", bodyOf("Device")),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusForbidden:          result(foreignPage),
			http.StatusNotFound:           result("There is no such device; for who may manage."),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// DeviceTest describes /notify/{KEY}/devices/{ID}/test.
func DeviceTest() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodPost, ID: "testDevice", Tag: ofMessages, Secrets: WithDevice,
		Summary: "Send a test to a device, with its secret as Authorization: Bearer",
		Answers: map[int]Answer{
			http.StatusOK:                 result("The device was sent a test.").streamed(),
			http.StatusUnauthorized:       result(notOwnDevice),
			http.StatusForbidden:          result(foreignPage),
			http.StatusFailedDependency:   undelivered("The push service has not taken it."),
			http.StatusTooManyRequests:    result("Too many tests from this address."),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}

// Receipts describes /notify/{KEY}/devices/{ID}/receipts.
func Receipts() About {
	return About{ID: uuid("The ID of a device."), Operations: []Operation{{
		Method: http.MethodPost, ID: "confirmReceipt", Tag: ofMessages,
		Summary: "Confirm that a device has a message",
		Body:    forms(object(Schema{"receipt": described(text(), "The field `receipt` of the push.")}, "receipt"), mediaJSON),
		Answers: map[int]Answer{
			http.StatusOK:                 answersJSON("The device.", bodyOf("Device")),
			http.StatusUnauthorized:       result("The device is unknown, or the token is not one for it."),
			http.StatusForbidden:          result(foreignPage),
			http.StatusServiceUnavailable: result(queueUnusable),
		},
	}}}
}
