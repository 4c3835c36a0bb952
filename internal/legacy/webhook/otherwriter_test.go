package webhook

import (
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRivals verifies that two writers of one definition's conversion write at increasing intervals, and that this is
// reported. When the other one is gone, the definition is corrected and nothing more is reported.
func TestRivals(t *testing.T) {
	clock := testingclock.NewFakePassiveClock(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))
	d := definitionOfPools()
	api := memory(t, d)
	config := func(name string) apiextensionsv1.WebhookClientConfig {
		return apiextensionsv1.WebhookClientConfig{CABundle: []byte("authority"),
			Service: &apiextensionsv1.ServiceReference{Namespace: name, Name: "karpenter", Path: new(Path), Port: new(int32(443))}}
	}
	p := &pointer{client: api, writers: otherWriters{now: clock.Now, wait: 30 * time.Second}}
	var reported error
	written := func(rounds int, apart time.Duration, other bool) (times int) {
		t.Helper()
		for range rounds {
			clock.SetTime(clock.Now().Add(apart))
			if err := api.Get(t.Context(), client.ObjectKeyFromObject(d), d); err != nil {
				t.Fatal(err)
			}
			if theirs := config("other"); other {
				d.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter,
					Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: &theirs, ConversionReviewVersions: []string{"v1"}}}
				if err := api.Update(t.Context(), d); err != nil {
					t.Fatal(err)
				}
			}
			var changed bool
			if changed, reported = p.pointTo(t.Context(), d.Name, config("ours")); changed {
				times++
			}
		}
		return times
	}
	if n := written(freeCorrections-1, time.Second, true); n != freeCorrections-1 || reported != nil {
		t.Errorf("written %d times in %d rounds, reported %v; want each time, and nothing reported", n, freeCorrections-1, reported)
	}
	// In an hour: one more write at once, then after half a minute, one, two, four, and every five minutes.
	if n := written(360, 10*time.Second, true); n < 12 || n > 17 {
		t.Errorf("written %d times in an hour, want about 16", n)
	}
	if reported == nil || !strings.Contains(reported.Error(), "the service other/karpenter") {
		t.Errorf("reported %v, want the other's service", reported)
	}
	if n := written(120, 10*time.Second, false); n != 1 || reported != nil {
		t.Errorf("written %d times after the other has gone, reported %v; want once, and no error at the end", n, reported)
	}
}
