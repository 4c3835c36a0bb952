package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// trials holds minimal objects of v1beta1, by definition.
var trials = map[string]string{
	"nodepools.karpenter.sh": `{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodePool",
		"spec": {"template": {"spec": {"nodeClassRef": {"name": "none"}, "requirements": []}}}}`,
	"nodeclaims.karpenter.sh": `{"apiVersion": "karpenter.sh/v1beta1", "kind": "NodeClaim",
		"spec": {"nodeClassRef": {"name": "none"}, "requirements": []}}`,
	"ec2nodeclasses.karpenter.k8s.aws": `{"apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass",
		"spec": {"amiFamily": "AL2023", "role": "none", "subnetSelectorTerms": [{"id": "subnet-0"}], "securityGroupSelectorTerms": [{"id": "sg-0"}]}}`,
}

// longestTrial is how long the API server may try to reach a webhook. Its own limit is half a minute.
const longestTrial = 10 * time.Second

// noConversion is the prefix of the API server's error when its webhook does not convert (apiextensions-apiserver,
// pkg/apiserver/conversion/webhook_converter.go).
const noConversion = "conversion webhook for "

// conversions makes the API server convert, where a controller has registered its webhook: a creation in dry-run mode
// calls the webhook. Lists are not sufficient: a list of no objects does not call the webhook, and others may come
// from a cache.
func (s *Source) conversions(ctx context.Context, f *Facts) {
	f.Unanswered = map[string]string{}
	for i := range f.Installed {
		d := &f.Installed[i]
		if trial := trials[d.Name]; trial != "" && saidToConvert(d) {
			if answer := s.try(ctx, trial); answer != "" {
				f.Unanswered[d.Name] = answer
			}
		}
	}
}

// saidToConvert reports whether a controller has registered its webhook in the definition.
func saidToConvert(d *apiextensionsv1.CustomResourceDefinition) bool {
	c := d.Spec.Conversion
	return c != nil && c.Strategy == apiextensionsv1.WebhookConverter && c.Webhook != nil && c.Webhook.ClientConfig != nil &&
		len(c.Webhook.ClientConfig.CABundle) > 0 && !isSwitchedOff(*d)
}

// try returns the API server's error about the webhook. It returns "" if the webhook responds, and after any other
// error.
func (s *Source) try(ctx context.Context, trial string) string {
	object := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(trial), object); err != nil {
		return ""
	}
	object.SetGenerateName("karpenter-doctor-")
	within, stop := context.WithTimeout(ctx, longestTrial)
	defer stop()
	err := s.Client.Create(within, object, client.DryRunAll)
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil:
		return "the webhook has not responded within " + longestTrial.String()
	}
	if at := strings.Index(err.Error(), noConversion); at >= 0 {
		return err.Error()[at:]
	}
	return ""
}
