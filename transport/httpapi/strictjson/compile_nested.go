package strictjson

import (
	"fmt"

	"github.com/getkin/kin-openapi/openapi3"
)

func (s *Schema) compileList(source *openapi3.Schema) (err error) {
	if !s.allows(List) {
		return nil
	}
	if source.Items == nil || source.MaxItems == nil {
		return fmt.Errorf("a list of a request has items and a maxItems")
	}
	s.minCount, s.maxCount = source.MinItems, source.MaxItems
	s.items, err = Compile(source.Items)
	return err
}

func (s *Schema) compileObject(source *openapi3.Schema) (err error) {
	if !s.allows(Object) {
		return nil
	}
	s.minCount, s.maxCount = source.MinProps, source.MaxProps
	for name, ref := range source.Properties {
		if s.fields[name], err = Compile(ref); err != nil {
			return fmt.Errorf("field %s: %w", name, err)
		}
	}
	more := source.AdditionalProperties
	switch {
	case more.Schema != nil:
		s.others, err = Compile(more.Schema)
		return err
	case more.Has == nil || *more.Has:
		return fmt.Errorf("an object of a request says additionalProperties: false, or what they are")
	}
	return nil
}
