package webhook

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	awsv1 "github.com/karpenter-go/karpenter/api/aws/v1"
	karpv1 "github.com/karpenter-go/karpenter/api/karpenter/v1"
)

// stored is the version in which objects are stored.
const stored = "v1"

// Path is the URL path of the webhook.
const Path = "/convert"

// SwitchedOff is the service that the definitions name while the webhook is disabled. No service has this name. The
// API server includes the name in its error for an older version, which so explains the reason.
const SwitchedOff = "karpenter-v1beta1-is-switched-off"

// owner is the field manager of writes to definitions.
const owner = client.FieldOwner("karpenter-conversion")

// Definitions returns the names of the definitions that have several versions.
func Definitions() []string {
	return []string{"nodepools." + karpv1.Group, "nodeclaims." + karpv1.Group, "ec2nodeclasses." + awsv1.Group}
}

// pointer keeps the webhook configuration in definitions.
type pointer struct {
	client  client.Client
	writers otherWriters
}

// pointTo sets the conversion of a definition to the webhook that target describes, and reports whether it changed
// the definition. A definition that is not installed, or has only one version, is not changed.
func (p *pointer) pointTo(ctx context.Context, name string, target apiextensionsv1.WebhookClientConfig) (changed bool, err error) {
	api := p.client
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if err := api.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
		if client.IgnoreNotFound(err) == nil {
			return false, nil
		}
		return false, fmt.Errorf("reading the definition %s: %w", name, err)
	}
	if len(definition.Spec.Versions) < 2 {
		return false, nil
	}
	want := &apiextensionsv1.CustomResourceConversion{
		Strategy: apiextensionsv1.WebhookConverter,
		Webhook:  &apiextensionsv1.WebhookConversion{ClientConfig: &target, ConversionReviewVersions: []string{"v1"}},
	}
	if reflect.DeepEqual(definition.Spec.Conversion, want) {
		return false, errors.Join(p.writers.err(name), dropOwnership(ctx, api, definition))
	}
	if p.writers.yields(name, saidBy(definition.Spec.Conversion)) {
		return false, p.writers.err(name)
	}
	patch, err := patchOf(definition, target)
	if err != nil {
		return false, fmt.Errorf("changing the definition %s: %w", name, err)
	}
	if err := api.Patch(ctx, definition, client.RawPatch("application/merge-patch+json", patch), owner); apierrors.IsConflict(err) {
		return false, nil // another replica or another writer; it is checked again
	} else if err != nil {
		return false, fmt.Errorf("setting the conversion webhook in the definition %s: %w", name, err)
	}
	return true, errors.Join(p.writers.err(name), dropOwnership(ctx, api, definition))
}

// saidBy returns the service that a definition names.
func saidBy(c *apiextensionsv1.CustomResourceConversion) string {
	if c == nil || c.Webhook == nil || c.Webhook.ClientConfig == nil || c.Webhook.ClientConfig.Service == nil {
		return "no service"
	}
	return "the service " + c.Webhook.ClientConfig.Service.Namespace + "/" + c.Webhook.ClientConfig.Service.Name
}

// patchOf returns the patch of a definition, as it was read, that sets the webhook.
func patchOf(definition *apiextensionsv1.CustomResourceDefinition, target apiextensionsv1.WebhookClientConfig) ([]byte, error) {
	service := map[string]any{"namespace": target.Service.Namespace, "name": target.Service.Name, "path": target.Service.Path, "port": target.Service.Port}
	at := map[string]any{"service": service, "url": nil, "caBundle": nil}
	if len(target.CABundle) > 0 {
		at["caBundle"] = target.CABundle
	}
	return json.Marshal(map[string]any{
		"metadata": map[string]any{"resourceVersion": definition.ResourceVersion},
		"spec": map[string]any{"conversion": map[string]any{
			"strategy": apiextensionsv1.WebhookConverter,
			"webhook":  map[string]any{"conversionReviewVersions": []string{"v1"}, "clientConfig": at},
		}},
	})
}

// dropOwnership removes this package's field ownership from a definition. Otherwise a server-side apply with another
// service, for example by Helm, would fail with a conflict, and an upgrade would be impossible. So the apply
// succeeds, and the server restores its own values afterward.
func dropOwnership(ctx context.Context, api client.Client, definition *apiextensionsv1.CustomResourceDefinition) error {
	entries := slices.DeleteFunc(slices.Clone(definition.ManagedFields), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == string(owner) && e.Subresource == ""
	})
	if len(entries) == len(definition.ManagedFields) || len(entries) == 0 { // an empty list has another meaning
		return nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": definition.ResourceVersion, "managedFields": entries}})
	if err != nil {
		return fmt.Errorf("changing the definition %s: %w", definition.Name, err)
	}
	err = api.Patch(ctx, definition, client.RawPatch("application/merge-patch+json", patch), owner)
	if err != nil && !apierrors.IsConflict(err) { // after a conflict it is checked again
		return fmt.Errorf("releasing the field spec.conversion of the definition %s: %w", definition.Name, err)
	}
	return nil
}

// olderStored returns the definitions whose objects may be stored in a version other than v1, including those that do
// not store v1, as the definitions of Karpenter 0.32 to 1.0.
func olderStored(ctx context.Context, api client.Reader) ([]*apiextensionsv1.CustomResourceDefinition, error) {
	var list []*apiextensionsv1.CustomResourceDefinition
	var wrong error
	for _, name := range Definitions() {
		definition := &apiextensionsv1.CustomResourceDefinition{}
		if err := api.Get(ctx, client.ObjectKey{Name: name}, definition); err != nil {
			if client.IgnoreNotFound(err) != nil {
				wrong = errors.Join(wrong, fmt.Errorf("reading the definition %s: %w", name, err))
			}
			continue
		}
		if slices.ContainsFunc(definition.Status.StoredVersions, func(v string) bool { return v != stored }) {
			list = append(list, definition)
		}
	}
	return list, wrong
}
