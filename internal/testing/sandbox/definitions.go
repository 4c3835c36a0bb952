package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/client/clientset/clientset"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
)

// Install makes the API server serve the resource definitions and replaces those of the same name. It returns when
// every version of each definition can be listed.
func Install(ctx context.Context, config *rest.Config, definitions []*apiextensionsv1.CustomResourceDefinition) error {
	config = rest.CopyConfig(config)
	config.WarningHandler = rest.NoWarnings{} // it lists every version, including deprecated ones
	extensions, err := clientset.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to install resource definitions: %w", err)
	}
	objects, err := dynamic.NewForConfig(config)
	if err != nil {
		return fmt.Errorf("connecting to install resource definitions: %w", err)
	}
	for _, definition := range definitions {
		if err := apply(ctx, extensions, definition); err != nil {
			return fmt.Errorf("installing the resource definition %s: %w", definition.Name, err)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	for _, definition := range definitions {
		err := until(ctx, "the resource "+definition.Name, func(ctx context.Context) error {
			return served(ctx, extensions, objects, definition)
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func apply(ctx context.Context, extensions clientset.Interface, definition *apiextensionsv1.CustomResourceDefinition) error {
	definitions := extensions.ApiextensionsV1().CustomResourceDefinitions()
	_, err := definitions.Create(ctx, definition.DeepCopy(), metav1.CreateOptions{})
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	before, err := definitions.Get(ctx, definition.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	replacement := definition.DeepCopy()
	replacement.ResourceVersion = before.ResourceVersion
	_, err = definitions.Update(ctx, replacement, metav1.UpdateOptions{})
	return err
}

func served(ctx context.Context, extensions clientset.Interface, objects dynamic.Interface, definition *apiextensionsv1.CustomResourceDefinition) error {
	now, err := extensions.ApiextensionsV1().CustomResourceDefinitions().Get(ctx, definition.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	established := false
	for _, condition := range now.Status.Conditions {
		if condition.Type == apiextensionsv1.Established && condition.Status == apiextensionsv1.ConditionTrue {
			established = true
		}
		if condition.Type == apiextensionsv1.NamesAccepted && condition.Status == apiextensionsv1.ConditionFalse {
			return fmt.Errorf("its names are refused: %s", condition.Message)
		}
	}
	if !established {
		return errors.New("it is not established yet")
	}
	for _, version := range definition.Spec.Versions {
		if !version.Served {
			continue
		}
		resource := schema.GroupVersionResource{Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural}
		if _, err := objects.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
			return err
		}
	}
	return nil
}
