package upkeep

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/pricing"
	pricingtypes "github.com/aws/aws-sdk-go-v2/service/pricing/types"

	"github.com/karpenter-go/karpenter/internal/cloud/aws/catalog"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/discovery"
	"github.com/karpenter-go/karpenter/internal/cloud/aws/instance"
)

// PricingAPI has the methods of *pricing.Client that the package calls.
type PricingAPI interface {
	GetProducts(context.Context, *pricing.GetProductsInput, ...func(*pricing.Options)) (*pricing.GetProductsOutput, error)
}

// PricingRegion returns the region with the price list endpoint nearest to a region; few regions have one.
// https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/using-price-list-query-api.html
func PricingRegion(region string) string {
	switch {
	case strings.HasPrefix(region, "cn-"):
		return "cn-northwest-1"
	case strings.HasPrefix(region, "ap-"):
		return "ap-south-1"
	case strings.HasPrefix(region, "eu-"):
		return "eu-central-1"
	}
	return "us-east-1"
}

// Prices refreshes an instance.Prices.
type Prices struct {
	EC2 EC2API
	// Pricing is a client for PricingRegion, and nil if the price list cannot be reached (--isolated-vpc).
	Pricing PricingAPI
	Calls   *discovery.Caller
	Book    *instance.Prices
	Region  string
	// Windows means that the prices are those of Windows, with the license, instead of Linux.
	Windows bool
	// Now returns the current time.
	Now func() time.Time
	// Rejected receives implausible entries. It may be nil.
	Rejected func(kind string, merged instance.Merged)
}

// listed reports whether on-demand prices can be read. The price list has the us-gov regions only for accounts outside
// of them, and its endpoint cannot be reached from inside.
func (p *Prices) listed() bool { return p.Pricing != nil && !strings.HasPrefix(p.Region, "us-gov") }

// currency returns the currency of the region's prices.
func (p *Prices) currency() string {
	if instance.InChina(p.Region) {
		return "CNY"
	}
	return "USD"
}

// RefreshOnDemand merges the price list into the book: one operating system, shared tenancy, and bare metal, which has dedicated
// tenancy in the list. It does nothing if the list cannot be reached. Prices that were read before an error are kept.
// Errors: *discovery.CallError, or that the list has no price.
func (p *Prices) RefreshOnDemand(ctx context.Context) error {
	if !p.listed() {
		return nil
	}
	prices, failed := map[string]float64{}, []error(nil)
	for _, of := range []struct{ tenancy, family string }{{"Shared", "Compute Instance"}, {"Dedicated", "Compute Instance (bare metal)"}} {
		if err := p.products(ctx, of.tenancy, of.family, prices); err != nil {
			failed = append(failed, err)
			break // a further call would most likely fail in the same way
		}
	}
	if len(prices) > 0 {
		p.merged("on-demand", p.Book.MergeOnDemand(prices, p.Now()))
	}
	if err := errors.Join(failed...); err != nil {
		return fmt.Errorf("refreshing prices on demand: %w", err)
	}
	if len(prices) == 0 {
		return fmt.Errorf("refreshing prices on demand: the price list has none for region %s; the previous prices stay in use", p.Region)
	}
	return nil
}

func (p *Prices) merged(kind string, merged instance.Merged) {
	if merged.RejectedCount > 0 && p.Rejected != nil {
		p.Rejected(kind, merged)
	}
}

// products adds the prices of a product family by type.
func (p *Prices) products(ctx context.Context, tenancy, family string, prices map[string]float64) error {
	sieve := p.Calls.Sieve("Pricing", "GetProducts")
	defer sieve.Close()
	asked := [][2]string{{"regionCode", p.Region}, {"preInstalledSw", "NA"}, {"operatingSystem", "Linux"}, {"capacitystatus", "Used"},
		{"marketoption", "OnDemand"}, {"tenancy", tenancy}, {"productFamily", family}}
	if p.Windows { // other products are for licenses that users bring
		asked[2][1] = "Windows"
		asked = append(asked, [2]string{"licenseModel", "No License required"})
	}
	var filters []pricingtypes.Filter
	for _, f := range asked {
		filters = append(filters, pricingtypes.Filter{Type: pricingtypes.FilterTypeTermMatch, Field: aws.String(f[0]), Value: aws.String(f[1])})
	}
	pages := pricing.NewGetProductsPaginator(p.Pricing,
		&pricing.GetProductsInput{ServiceCode: aws.String("AmazonEC2"), Filters: filters, MaxResults: aws.Int32(100)})
	for page, err := range discovery.Pages(ctx, p.Calls, "Pricing", "GetProducts", pages) {
		if err != nil {
			return err
		}
		for _, text := range page.PriceList {
			read, ok := priceOf(text, p.currency())
			if ok && sieve.Keep(read.is(asked), read.typeName) {
				prices[read.typeName] = read.price
			}
		}
	}
	return nil
}

// listedPrice is an entry of the price list.
type listedPrice struct {
	typeName string
	price    float64
	// attributes are the attributes of the product, including productFamily.
	attributes map[string]string
}

// is reports whether the product has the given attributes. Attributes that the entry lacks are ignored.
func (l *listedPrice) is(asked [][2]string) bool {
	for _, a := range asked {
		if said, tells := l.attributes[a[0]]; tells && said != a[1] {
			return false
		}
	}
	return true
}

// priceOf parses one entry of the price list: the price per hour of its type. Entries without one are free tiers and
// reservations. Invalid JSON is ignored.
// https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-services.html
func priceOf(text, currency string) (read listedPrice, ok bool) {
	var item struct {
		Product struct {
			ProductFamily string            `json:"productFamily"`
			Attributes    map[string]string `json:"attributes"`
		} `json:"product"`
		Terms struct {
			OnDemand map[string]struct {
				PriceDimensions map[string]struct {
					Unit         string            `json:"unit"`
					PricePerUnit map[string]string `json:"pricePerUnit"`
				} `json:"priceDimensions"`
			} `json:"OnDemand"`
		} `json:"terms"`
	}
	if json.Unmarshal([]byte(text), &item) != nil || item.Product.Attributes["instanceType"] == "" {
		return listedPrice{}, false
	}
	read = listedPrice{typeName: item.Product.Attributes["instanceType"], attributes: item.Product.Attributes}
	if item.Product.ProductFamily != "" {
		read.attributes["productFamily"] = item.Product.ProductFamily
	}
	for _, term := range item.Terms.OnDemand {
		for _, dimension := range term.PriceDimensions {
			per, err := strconv.ParseFloat(dimension.PricePerUnit[currency], 64)
			if err == nil && per > 0 && dimension.Unit == "Hrs" {
				read.price = max(read.price, per) // there is one in practice; the highest is the safe choice
			}
		}
	}
	return read, read.price > 0
}

// RefreshSpot merges the current spot prices into the book. Prices that were read before an error are kept. Errors:
// *discovery.CallError.
func (p *Prices) RefreshSpot(ctx context.Context) error {
	now := p.Now()
	products := []string{"Linux/UNIX", "Linux/UNIX (Amazon VPC)"}
	if p.Windows {
		products = []string{"Windows", "Windows (Amazon VPC)"}
	}
	sieve := p.Calls.Sieve("EC2", "DescribeSpotPriceHistory")
	defer sieve.Close()
	pages := ec2.NewDescribeSpotPriceHistoryPaginator(p.EC2, &ec2.DescribeSpotPriceHistoryInput{
		ProductDescriptions: products, StartTime: &now, MaxResults: aws.Int32(1000)})
	newest, at := map[[2]string]instance.SpotPrice{}, map[[2]string]time.Time{}
	var failed error
	for page, err := range discovery.Pages(ctx, p.Calls, "EC2", "DescribeSpotPriceHistory", pages) {
		if err != nil {
			failed = fmt.Errorf("refreshing spot prices: %w", err)
			break
		}
		for _, entry := range page.SpotPriceHistory {
			if !sieve.Keep(slices.Contains(products, string(entry.ProductDescription)),
				string(entry.InstanceType)+" "+string(entry.ProductDescription)) {
				continue
			}
			key, when := [2]string{string(entry.InstanceType), aws.ToString(entry.AvailabilityZone)}, aws.ToTime(entry.Timestamp)
			price, err := strconv.ParseFloat(aws.ToString(entry.SpotPrice), 64)
			if _, seen := newest[key]; err != nil || seen && !when.After(at[key]) {
				continue
			}
			newest[key], at[key] = instance.SpotPrice{Type: key[0], Zone: key[1], Price: price}, when
		}
	}
	prices := make([]instance.SpotPrice, 0, len(newest))
	for _, entry := range newest {
		prices = append(prices, entry)
	}
	if len(prices) > 0 {
		p.merged("spot", p.Book.MergeSpot(prices, now))
	}
	return failed
}

// Embedded describes, for the log at startup, the prices in use until the first refresh: their region and date, and the
// types without a price.
func Embedded(catalog *catalog.Catalog, region string) string {
	stamp, known := catalog.Meta.PriceStamps[region]
	from := region
	if !known {
		from = "us-east-1"
		stamp = catalog.Meta.PriceStamps[from]
	}
	unpriced := catalog.Unpriced(from)
	text := fmt.Sprintf("prices on demand of %s as of %s (Linux, shared tenancy, USD)", from, stamp)
	if !known {
		text += ", used as estimates for " + region
		if instance.InChina(region) {
			text += fmt.Sprintf(" at %d CNY to the USD", instance.YuanPerDollar)
		}
	}
	if len(unpriced) > 0 {
		text += fmt.Sprintf("; %d types have no price and are not launched: %s", len(unpriced), strings.Join(unpriced, ", "))
	}
	return text
}
