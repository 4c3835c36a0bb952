package awssim

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"net/http"
	"slices"
	"strconv"
	"time"
)

func pricingMethods() map[string]method {
	return map[string]method{"GetProducts": {run: getProducts,
		params: []string{"Filters", "FormatVersion", "MaxResults", "NextToken", "ServiceCode"}}}
}

// getProducts implements pricing:GetProducts for AmazonEC2: one product per type and system in the price list, on demand.
// Prices are from the catalog, those of us-east-1 for regions without prices. It returns at most a hundred per page.
// https://docs.aws.amazon.com/aws-cost-management/latest/APIReference/API_pricing_GetProducts.html
func getProducts(c *Cloud, r *request, now time.Time) (any, error) {
	var in struct {
		ServiceCode   string
		FormatVersion string
		MaxResults    *int
		NextToken     string
		Filters       []productFilter
	}
	if err := r.in(&in); err != nil {
		return nil, err
	}
	if in.ServiceCode != "AmazonEC2" {
		return nil, &apiError{"InvalidParameterException", "Input Parameters are invalid: service code " + in.ServiceCode, http.StatusBadRequest}
	}
	if in.FormatVersion != "" && in.FormatVersion != "aws_v1" {
		return nil, &apiError{"InvalidParameterException", "Input Parameters are invalid: format version " + in.FormatVersion,
			http.StatusBadRequest}
	}
	size, start := 100, 0
	if in.MaxResults != nil {
		size = *in.MaxResults
	}
	if size < 1 || size > 100 {
		return nil, &apiError{"InvalidParameterException", "MaxResults must be 1 to 100", http.StatusBadRequest}
	}
	if in.NextToken != "" {
		var err error
		if start, err = strconv.Atoi(in.NextToken); err != nil {
			return nil, &apiError{"InvalidNextTokenException", "The pagination token is invalid", http.StatusBadRequest}
		}
	}
	products, err := c.products(in.Filters)
	if err != nil {
		return nil, err
	}
	start = min(start, len(products))
	end := min(start+size, len(products))
	list := []string{}
	for _, attributes := range products[start:end] {
		list = append(list, c.priceItem(attributes, now))
	}
	out := map[string]any{"FormatVersion": "aws_v1", "PriceList": list}
	if end < len(products) {
		out["NextToken"] = strconv.Itoa(end)
	}
	return out, nil
}

// productFilter is a filter of GetProducts: it matches the whole value of an attribute.
type productFilter struct{ Field, Type, Value string }

// products returns the attributes of the products that match all filters.
func (c *Cloud) products(filters []productFilter) ([]map[string]string, error) {
	var products []map[string]string
	for _, name := range c.names {
		for _, system := range []string{"Linux", "Windows"} {
			attributes := c.product(c.types[name], system)
			fits := attributes != nil
			for _, f := range filters {
				if f.Type != "TERM_MATCH" {
					return nil, &apiError{"InvalidParameterException", "filter type " + f.Type + " is not simulated", http.StatusBadRequest}
				}
				fits = fits && attributes[f.Field] == f.Value
			}
			if fits {
				products = append(products, attributes)
			}
		}
	}
	return products, nil
}

// windowsLicense is the price of Windows, USD per vCPU and hour. https://aws.amazon.com/ec2/pricing/on-demand/
const windowsLicense = 0.046

// license returns the price of the license of a system for a type, USD per hour.
func (t *machineType) license(system string) float64 {
	if system == "Windows" {
		return windowsLicense * float64(t.VCPU)
	}
	return 0
}

// product returns the attributes of a type with a system in the price list, nil if it is not in it. Bare metal has
// dedicated tenancy. Windows runs on x86.
func (c *Cloud) product(t *machineType, system string) map[string]string {
	if c.listedPrice(t) == 0 || system == "Windows" && !slices.Contains(t.Arch, "x86_64") {
		return nil
	}
	attributes := map[string]string{
		"instanceType": t.Name, "regionCode": c.opts.Region, "operatingSystem": system, "preInstalledSw": "NA",
		"capacitystatus": "Used", "marketoption": "OnDemand", "tenancy": "Shared", "productFamily": "Compute Instance",
		"servicecode": "AmazonEC2", "vcpu": strconv.Itoa(t.VCPU), "licenseModel": "No License required",
	}
	if t.Metal {
		attributes["tenancy"], attributes["productFamily"] = "Dedicated", "Compute Instance (bare metal)"
	}
	return attributes
}

// priceItem returns one entry of a price list: a JSON text within the JSON response.
// https://docs.aws.amazon.com/awsaccountbilling/latest/aboutv2/reading-service-price-list-file-for-services.html
func (c *Cloud) priceItem(attributes map[string]string, now time.Time) string {
	h := fnv.New64a()
	now = now.Truncate(24 * time.Hour) // a list is published once a day
	t, system := c.types[attributes["instanceType"]], attributes["operatingSystem"]
	fmt.Fprint(h, t.Name, c.opts.Region)
	if system != "Linux" {
		fmt.Fprint(h, system)
	}
	sku := fmt.Sprintf("%016X", h.Sum64())
	term := sku + ".JRTCKXETXF"
	product := map[string]any{"productFamily": attributes["productFamily"], "sku": sku, "attributes": attributes}
	price := map[string]any{
		"unit": "Hrs", "endRange": "Inf", "beginRange": "0", "rateCode": term + ".6YS6EN2CT7", "appliesTo": []string{},
		"description":  t.Name + " " + system + " on demand",
		"pricePerUnit": map[string]string{"USD": strconv.FormatFloat(c.listedPrice(t)+t.license(system), 'f', 10, 64)},
	}
	item, err := json.Marshal(map[string]any{
		"product": product, "serviceCode": "AmazonEC2", "version": now.UTC().Format("20060102150405"),
		"publicationDate": now.UTC().Format(time.RFC3339),
		"terms": map[string]any{"OnDemand": map[string]any{term: map[string]any{
			"sku": sku, "offerTermCode": "JRTCKXETXF", "termAttributes": map[string]string{}, "effectiveDate": now.UTC().Format(time.RFC3339),
			"priceDimensions": map[string]any{term + ".6YS6EN2CT7": price},
		}}},
	})
	if err != nil {
		panic(fmt.Sprintf("encoding a price: %v", err))
	}
	return string(item)
}
