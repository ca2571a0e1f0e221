// Copyright the onnx-addnorm authors
// SPDX-License-Identifier: Apache-2.0
//
// What a reader could not read in the page that this runs in, as a list of
// sentences; bench_html_test.py evaluates it.
(() => {
  const faults = [];
  const kSlack = 0.6;  // pixels, of rounding
  const kContrast = 4.5;
  for (const details of document.querySelectorAll('details'))
    details.open = true;

  const isWithin = (inner, outer) =>
      inner.left >= outer.left - kSlack && inner.right <= outer.right + kSlack &&
      inner.top >= outer.top - kSlack && inner.bottom <= outer.bottom + kSlack;
  const overlap = (a, b) =>
      a.left < b.right - kSlack && b.left < a.right - kSlack &&
      a.top < b.bottom - kSlack && b.top < a.bottom - kSlack;
  const box = element => element.getBoundingClientRect();
  const named = element =>
      `${element.tagName}.${element.getAttribute('class')} "${
          element.textContent.slice(0, 60)}"`;

  // ---- layout
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth)
    faults.push(`page: ${root.scrollWidth} wide on ${root.clientWidth}`);

  // ---- charts
  const checkChart = chart => {
    const id = chart.getAttribute('aria-labelledby');
    const marks = [...chart.querySelectorAll('.mark')];
    const texts = [...chart.querySelectorAll('text')];
    const plot = box(chart.querySelector('.plot'));
    if (marks.length === 0) faults.push(`${id}: no marks`);
    for (const name of id.split(' ')) {
      if (document.querySelectorAll(`[id="${name}"]`).length !== 1)
        faults.push(`${id}: ${name} is not unique`);
      else if (!document.getElementById(name).textContent.trim())
        faults.push(`${id}: ${name} is empty`);
    }
    for (const element of chart.querySelectorAll('rect, line, path, polyline, text'))
      if (!isWithin(box(element), box(chart)))
        faults.push(`${id}: ${named(element)} is outside of the chart`);
    for (const mark of chart.querySelectorAll('.mark, .whisker, .line'))
      if (!isWithin(box(mark), plot))
        faults.push(`${id}: ${named(mark)} is outside of the plot`);
    texts.forEach((text, i) => {
      for (const other of texts.slice(i + 1))
        if (overlap(box(text), box(other)))
          faults.push(`${id}: ${named(text)} overlaps ${named(other)}`);
      for (const mark of marks)
        if (overlap(box(text), box(mark)))
          faults.push(`${id}: ${named(text)} overlaps ${named(mark)}`);
    });
    if (box(texts[0]).height < 9) faults.push(`${id}: text is too small`);
  };
  const charts = [...document.querySelectorAll('svg.chart')];
  charts.forEach(checkChart);

  // ---- contrast, as WCAG 2 has it
  const channels = color => (color.match(/[\d.]+/g) || [0, 0, 0, 0]).map(Number);
  const isSolid = color => color !== 'none' && (channels(color)[3] ?? 1) === 1;
  const luminance = color => {
    const [r, g, b] = channels(color).map(value => {
      const share = value / 255;
      return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const contrast = (a, b) => {
    const [low, high] = [luminance(a), luminance(b)].sort((x, y) => x - y);
    return (high + 0.05) / (low + 0.05);
  };
  const background = element => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (isSolid(color)) return color;
    }
    return 'rgb(255, 255, 255)';
  };
  // What is filled behind a chart's text, besides the page.
  const fillsBehind = text =>
      [...text.ownerSVGElement.querySelectorAll('rect')]
          .filter(rect => overlap(box(rect), box(text)))
          .map(rect => getComputedStyle(rect).fill)
          .filter(isSolid);
  const checkText = element => {
    const style = getComputedStyle(element);
    const isChart = element instanceof SVGElement;
    const color = isChart ? style.fill : style.color;
    const behind = [background(element), ...(isChart ? fillsBehind(element) : [])];
    for (const other of behind)
      if (contrast(color, other) < kContrast)
        faults.push(`${named(element)}: contrast ${contrast(color, other).toFixed(2)}`);
  };
  const hasText = element => [...element.childNodes].some(
      node => node.nodeType === Node.TEXT_NODE && node.textContent.trim());
  let texts = 0;
  for (const element of document.body.querySelectorAll('*:not(script, title, desc)')) {
    if (!hasText(element)) continue;
    texts += 1;
    checkText(element);
  }
  return {faults: [...new Set(faults)], charts: charts.length, texts};
})()
