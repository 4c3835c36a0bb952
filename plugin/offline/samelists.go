package offline

import (
	"context"
	"fmt"
	"reflect"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// sameLists answers a list that is repeated with the first answer, so that two inputs are of the same moment.
type sameLists struct {
	client.Client
	known map[string]client.ObjectList
}

func (c *sameLists) List(ctx context.Context, list client.ObjectList, options ...client.ListOption) error {
	var o client.ListOptions
	o.ApplyOptions(options)
	key := fmt.Sprintf("%T %s %v", list, o.Namespace, *o.AsListOptions())
	if known := c.known[key]; known != nil {
		reflect.ValueOf(list).Elem().Set(reflect.ValueOf(known.DeepCopyObject()).Elem())
		return nil
	}
	if err := c.Client.List(ctx, list, options...); err != nil {
		return err
	}
	c.known[key] = list.DeepCopyObject().(client.ObjectList)
	return nil
}
