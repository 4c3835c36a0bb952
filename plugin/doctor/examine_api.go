package doctor

import (
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/karpenter-go/karpenter/cloud"
)

// definitions returns findings about differences between the installed definitions and those of this version.
func definitions(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for _, want := range f.Expected {
		object := "customresourcedefinition/" + want.Name
		at := slices.IndexFunc(f.Installed, func(d apiextensionsv1.CustomResourceDefinition) bool { return d.Name == want.Name })
		if at < 0 {
			if !f.couldNot("CustomResourceDefinition") {
				list = append(list, found(DefinitionMissing, object, "the API server does not serve "+want.Spec.Names.Kind, "install the chart karpenter-crd, or run kubectl apply --server-side -f api/crds/"))
			}
			continue
		}
		if differs := difference(want, &f.Installed[at]); differs != "" {
			list = append(list, found(DefinitionDiffers, object, "the CRD differs from that of this version: "+differs, "upgrade the chart karpenter-crd to the version of the controller, or run kubectl apply --server-side -f api/crds/ of that version"))
		}
	}
	return list
}

func (f *Facts) couldNot(read string) bool {
	return slices.ContainsFunc(f.Unread, func(u Unread) bool { return strings.HasSuffix(u.What, read) })
}

// difference describes how an installed definition differs from the expected one, or returns "" if it does not.
// Additional versions are not a difference.
func difference(want, have *apiextensionsv1.CustomResourceDefinition) string {
	if want.Spec.Scope != have.Spec.Scope {
		return fmt.Sprintf("the scope is %s, want %s", have.Spec.Scope, want.Spec.Scope)
	}
	for i := range want.Spec.Versions {
		version := &want.Spec.Versions[i]
		at := slices.IndexFunc(have.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version.Name })
		switch {
		case at < 0:
			return fmt.Sprintf("version %s is missing", version.Name)
		case !have.Spec.Versions[at].Served:
			return fmt.Sprintf("version %s is not served", version.Name)
		case version.Storage && !have.Spec.Versions[at].Storage:
			return fmt.Sprintf("version %s is not the storage version", version.Name)
		case !reflect.DeepEqual(asJSON(version.Schema), asJSON(have.Spec.Versions[at].Schema)):
			return fmt.Sprintf("the schema of version %s differs", version.Name)
		case !reflect.DeepEqual(asJSON(version.Subresources), asJSON(have.Spec.Versions[at].Subresources)):
			return fmt.Sprintf("the subresources of version %s differ", version.Name)
		}
	}
	return ""
}

// asJSON returns a value as decoded JSON, so that only its content is compared.
func asJSON(value any) any {
	var plain any
	if text, err := json.Marshal(value); err == nil {
		_ = json.Unmarshal(text, &plain) // valid JSON, because it was just encoded
	}
	return plain
}

// switchedOff is the Service that definitions name while the controller's webhook is disabled.
const switchedOff = "karpenter-v1beta1-is-switched-off"

// conversions finds definitions whose objects cannot be converted. While objects of an older version are stored, no
// object of the kind can be read without a working webhook. Otherwise only clients of older versions are affected.
func conversions(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for i := range f.Installed {
		d := &f.Installed[i]
		want := slices.IndexFunc(f.Expected, func(want *apiextensionsv1.CustomResourceDefinition) bool { return want.Name == d.Name })
		if want < 0 {
			continue
		}
		c := f.Expected[want].Spec.Conversion
		// Versions without differences in their fields, as those of Provisioners, differ in name only.
		differ := len(d.Spec.Versions) > 1 && c != nil && c.Strategy == apiextensionsv1.WebhookConverter
		if problem, fix := f.conversion(d, differ); problem != "" {
			list = append(list, found(ConversionBroken, "customresourcedefinition/"+d.Name, problem, fix))
		}
	}
	return list
}

// conversion describes the problem of a definition's conversion and its fix, or returns "" if there is none. several
// means that the versions of the definition differ in their fields.
func (f *Facts) conversion(d *apiextensionsv1.CustomResourceDefinition, several bool) (problem, fix string) {
	c := d.Spec.Conversion
	if c == nil || c.Strategy != apiextensionsv1.WebhookConverter || c.Webhook == nil || c.Webhook.ClientConfig == nil {
		if several {
			return "the CRD has several versions and no conversion webhook; objects lose fields that have another path in the other version",
				"upgrade the chart karpenter-crd to the version of the controller, or run kubectl apply --server-side -f api/crds/ of that version"
		}
		return "", ""
	}
	stored := slices.ContainsFunc(d.Status.StoredVersions, func(v string) bool { return v != "v1" && several })
	at := c.Webhook.ClientConfig
	if several && !stored && len(at.CABundle) == 0 {
		if at.Service != nil && at.Service.Name == switchedOff {
			return "", "" // intended
		}
		return "requests in older versions fail, because no controller has registered its conversion webhook since the CRD was installed",
			"run the controller with --karpenter-service=NAME, the name of its Service (the chart sets it; operations.md); " +
				"with --webhook-port=0, requests in older versions fail intentionally"
	}
	why := ""
	if at.Service != nil {
		why = f.unreachable(at.Service.Namespace, at.Service.Name)
	}
	if why == "" && several && !trusted(at.CABundle, f.Now) {
		why = "no certificate of its authority is valid"
	}
	if answer := f.Unanswered[d.Name]; why == "" && answer != "" {
		why = "the API server reports: " + answer
	}
	switch {
	case why == "":
		return "", ""
	case !several:
		return "the CRD has a conversion webhook, and " + why,
			"this version needs no conversion; remove the webhook: kubectl patch customresourcedefinition " + d.Name + ` --type=merge -p '{"spec":{"conversion":{"strategy":"None","webhook":null}}}'`
	case stored:
		return "objects are stored in an older version and cannot be read without the conversion webhook, and " + why,
			"run the controller with its webhook (chart: conversion.enabled=true), which rewrites the objects; if it does not, see its log"
	}
	return "the CRD has a conversion webhook for objects of older versions, and " + why,
		"verify that a controller runs with --karpenter-service=NAME, the name of its Service (the chart sets it), and see its log; " +
			"with --webhook-port=0 (chart: conversion.enabled=false), requests in older versions fail intentionally"
}

// trusted reports whether a bundle of certificates contains a valid one.
func trusted(bundle []byte, now time.Time) bool {
	for block, rest := pem.Decode(bundle); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && now.Before(certificate.NotAfter) && now.After(certificate.NotBefore) {
			return true
		}
	}
	return false
}

// unreachable returns why a Service has no endpoints that respond, or "" if it seems to have some.
func (f *Facts) unreachable(namespace, name string) string {
	if f.couldNot("Service") || f.couldNot("EndpointSlice") {
		return ""
	}
	at := slices.IndexFunc(f.Services, func(s corev1.Service) bool { return s.Namespace == namespace && s.Name == name })
	if at < 0 {
		return fmt.Sprintf("the Service %s/%s does not exist", namespace, name)
	}
	if f.Services[at].Spec.Type == corev1.ServiceTypeExternalName {
		return "" // outside of the cluster, where readiness is unknown
	}
	for i := range f.Slices {
		slice := &f.Slices[i]
		if slice.Namespace != namespace || slice.Labels["kubernetes.io/service-name"] != name {
			continue
		}
		for _, e := range slice.Endpoints {
			if len(e.Addresses) > 0 && (e.Conditions.Ready == nil || *e.Conditions.Ready) {
				return ""
			}
		}
	}
	return fmt.Sprintf("the Service %s/%s has no ready endpoint", namespace, name)
}

// webhook holds what both kinds of admission webhooks have in common.
type webhook struct {
	configuration, name string
	policy              *admissionv1.FailurePolicyType
	service             *admissionv1.ServiceReference
	rules               []admissionv1.RuleWithOperations
	// namespaced means that the webhook applies to some namespaces only, and chosen that it applies to some objects
	// only.
	namespaced, chosen bool
}

// some reports whether a selector excludes anything.
func some(s *metav1.LabelSelector) bool {
	return s != nil && len(s.MatchLabels)+len(s.MatchExpressions) > 0
}

// webhooks finds admission webhooks that reject all requests because they do not respond, and that apply to the
// controller's writes. A webhook that applies to some objects only, or under conditions, may be unrelated to the
// controller and is not reported.
func webhooks(f *Facts, _ Options) []cloud.Finding {
	var list []cloud.Finding
	for _, w := range f.webhooks() {
		if w.service == nil || w.policy != nil && *w.policy == admissionv1.Ignore {
			continue
		}
		if w.chosen {
			continue
		}
		written := w.writtenResource()
		why := f.unreachable(w.service.Namespace, w.service.Name)
		if written == "" || why == "" {
			continue
		}
		list = append(list, found(WebhookBroken, w.configuration, fmt.Sprintf("the admission webhook %s applies to %s and rejects all requests, because %s", w.name, written, why),
			"repair the server of the webhook, or delete "+w.configuration+" if it is not needed (older versions of Karpenter leave such configurations behind)"))
	}
	return list
}

func (f *Facts) webhooks() []webhook {
	var list []webhook
	for i := range f.Validating {
		for k := range f.Validating[i].Webhooks {
			w := &f.Validating[i].Webhooks[k]
			list = append(list, webhook{"validatingwebhookconfiguration/" + f.Validating[i].Name, w.Name, w.FailurePolicy, w.ClientConfig.Service, w.Rules,
				some(w.NamespaceSelector), some(w.ObjectSelector) || len(w.MatchConditions) > 0})
		}
	}
	for i := range f.Mutating {
		for k := range f.Mutating[i].Webhooks {
			w := &f.Mutating[i].Webhooks[k]
			list = append(list, webhook{"mutatingwebhookconfiguration/" + f.Mutating[i].Name, w.Name, w.FailurePolicy, w.ClientConfig.Service, w.Rules,
				some(w.NamespaceSelector), some(w.ObjectSelector) || len(w.MatchConditions) > 0})
		}
	}
	return list
}

// writtenResource returns a resource that the controller writes and to which the webhook applies, or "" if there is none.
// Namespace selectors do not exclude cluster-scoped objects.
func (w *webhook) writtenResource() string {
	for _, right := range Rights(Installation{LeaseName: "any"}) {
		if w.namespaced && !right.clusterWide() {
			continue
		}
		for _, rule := range w.rules {
			group := slices.Contains(rule.APIGroups, "*") || slices.Contains(rule.APIGroups, right.Group)
			resource := slices.ContainsFunc(rule.Resources, func(pattern string) bool { return about(pattern, right.Resource) })
			if group && resource && slices.ContainsFunc(right.Verbs, func(verb string) bool { return admitted(rule.Operations, verb) }) {
				return right.Resource
			}
		}
	}
	return ""
}

// clusterWide reports whether the objects are cluster-scoped.
func (r *Right) clusterWide() bool {
	return r.Group == "" && r.Resource == "nodes" || strings.HasPrefix(r.Group, "karpenter.")
}

// about reports whether a pattern matches a resource, with its subresource after a slash, as the API server does:
// each part separately.
func about(pattern, resource string) bool {
	wantOf, wantSub, _ := strings.Cut(pattern, "/")
	of, sub, _ := strings.Cut(resource, "/")
	return (wantOf == "*" || wantOf == of) && (wantSub == "*" || wantSub == sub)
}

// admitted reports whether admission applies to requests with the verb. It never applies to reads.
func admitted(operations []admissionv1.OperationType, verb string) bool {
	operation, writes := map[string]admissionv1.OperationType{
		"create": admissionv1.Create, "update": admissionv1.Update, "patch": admissionv1.Update, "delete": admissionv1.Delete,
	}[verb]
	return writes && (slices.Contains(operations, admissionv1.OperationAll) || slices.Contains(operations, operation))
}
