package main

import (
	"errors"
	"fmt"

	"allocator/client"
)

// client makes the caller of the service.
func (s *clientSettings) client() (*client.ClientWithResponses, error) {
	if s.APIKey == "" {
		return nil, usagef("no API key is given: set ALLOCATOR_API_KEY or --api-key (`allocator up` shows one)")
	}
	api, err := client.New(s.URL, string(s.APIKey))
	if err != nil {
		return nil, usagef("the address of the service cannot be used: %v", err)
	}
	return api, nil
}

// call makes the caller and runs do with it.
func (s *clientSettings) call(do func(api *client.ClientWithResponses) error) error {
	api, err := s.client()
	if err != nil {
		return err
	}
	return do(api)
}

// errForeign says that something else than the service answered.
var errForeign = errors.New("the answer is not one of Allocator's: does ALLOCATOR_URL name the service itself?")

// value gives the body of a successful answer, or of the first status that has one. A call returns every refusal as its
// error, so no body at all means that somebody else answered.
func value[T any](bodies ...*T) (T, error) {
	for _, body := range bodies {
		if body != nil {
			return *body, nil
		}
	}
	var none T
	return none, errForeign
}

// everyItem reads a list over HTTP from its beginning to its end, or to the given number of items.
func everyItem[T any](limit int, page func(token string) (items []T, next string, err error)) ([]T, error) {
	all := []T{}
	for token := ""; ; {
		items, next, err := page(token)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
		switch {
		case limit > 0 && len(all) >= limit:
			return all[:limit], nil
		case next == "":
			return all, nil
		case next == token:
			return nil, fmt.Errorf("%w (the list does not end)", errForeign)
		}
		token = next
	}
}
