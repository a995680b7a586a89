// Where a matrix that was quantized and dequantized differs from Quark 0.13's, on purpose or because of what Quark does with a spec. The first
// row that explains a case counts; a case that none explains is a failure.
const integer = ({ dtype }) => /^u?int\d+$/.test(dtype);

export const numberDifferences = [
  {
    id: 'negative channel axes',
    text: 'with a negative ch_axis Quark broadcasts the scales of integers to a third axis; the result has another shape',
    explains: ({ isOtherShape }) => isOtherShape,
  },
  {
    id: 'histograms',
    text: 'PerTensorHistogramObserver finds no range in Quark (scale 1, or infinite); here it is min-max. MSE and percentile search the whole range (web/docs/differences.md). HistogramObserverPro of 4 bits counts errors of 256 codes in Quark, of 16 here',
    explains: ({ specs }) =>
      /^PerTensor(Histogram|MSE|Percentile)/.test(specs[0].observer_cls ?? '') &&
      (specs[0].observer_cls !== 'PerTensorHistogramObserverPro' || specs[0].dtype === 'uint4'),
  },
  {
    id: 'types of scales',
    text: 'scale_type float8_e5m3 and float8_e8m0fnu round scales here; Quark reads them only when it exports',
    explains: ({ specs }) => specs.some(({ scale_type }) => /^float8/.test(scale_type ?? '')),
  },
  {
    id: 'scales of 16 bits',
    text: 'scale_type float16 and bfloat16 of floats: Quark rounds the largest magnitude and then divides, here the quotient is rounded',
    explains: ({ specs }) => !integer(specs[0]) && /^b?float16$/.test(specs[0].scale_type ?? ''),
  },
  {
    id: 'blocks without a scale format',
    text: 'with PerBlockMXObserver and scale_format null Quark takes exponents for scales; here they are float32',
    explains: ({ specs }) => /^PerBlockMX/.test(specs[0].observer_cls ?? '') && specs[0].scale_format === null,
  },
  {
    id: 'scale formats without blocks',
    text: 'Quark reads scale_format for blocks alone; here fp8 per tensor and per channel has such scales, too',
    explains: ({ specs }) =>
      specs[0].dtype.startsWith('fp8') && specs[0].qscheme !== 'per_group' && !!specs[0].scale_format,
  },
  {
    id: 'e4m3 scales',
    text: 'the scale of the whole tensor is one division here, two in Quark: values differ by one unit in the last place',
    explains: ({ specs, largest }) => specs[0].scale_format === 'e4m3' && largest < 2e-7,
  },
  {
    id: 'differences of subnormal blocks',
    text: 'PerBlockMXDiffsObserver squares errors in float32, which vanish for blocks near 1e-30',
    explains: ({ specs, count }) => specs[0].observer_cls === 'PerBlockMXDiffsObserver' && count <= 128,
  },
  {
    id: 'logarithms of 16 bits',
    text: 'scale_calculation_mode floor and ceil, and bfp16: Quark takes the logarithm in the dtype of a weight of 16 bits, which is rounded to a whole number near powers of two; here powers of two are read from the bits',
    explains: ({ specs: [{ dtype: codes, scale_calculation_mode }], dtype }) =>
      dtype !== 'float32' && (codes === 'bfp16' || /^(floor|ceil)$/.test(scale_calculation_mode ?? '')),
  },
  {
    id: 'histograms of 16 bits',
    text: 'HistogramObserverPro: torch bins values of 16 bits by edges of 16 bits, here they are float32',
    explains: ({ specs, dtype }) => dtype !== 'float32' && specs[0].observer_cls === 'PerTensorHistogramObserverPro',
  },
  {
    id: 'observers of another dtype',
    text: 'PerBlockBFPObserver for floats, and the range of TQT for unsigned integers, are what Quark’s formulas happen to give',
    explains: ({ specs: [{ observer_cls, dtype }] }) =>
      observer_cls === 'PerBlockBFPObserver' || (observer_cls === 'TQTObserver' && dtype.startsWith('u')),
  },
  {
    id: 'int32',
    text: 'codes of 32 bits exceed the 24 bits of float32, in which both compute; which of the last codes comes out is not compared',
    explains: ({ specs }) => specs[0].dtype === 'int32',
  },
];
